// A remote tier, with what it tells and counts.
#pragma once

#include "../support/stub_server.hpp"
#include "samples.hpp"

#include <jitsmith/cache/remote.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith::test {

using std::chrono::milliseconds;

class RemoteBench {
 public:
  explicit RemoteBench(std::uint16_t port) { options.url = fmt::format("redis://127.0.0.1:{}", port); }
  explicit RemoteBench(std::string url) { options.url = std::move(url); }

  // Made at its first use, so that a test can set options first.
  Remote& remote() {
    if (!remote_) remote_ = make_remote({real_file_system(), *clock_used, counters, events}, options);
    return *remote_;
  }
  std::optional<Entry> get(const Entry& wanted) {
    return remote().get(wanted.key_text, digest_of(wanted.key_text));
  }
  std::optional<Entry> get() { return get(entry); }
  void put(const Entry& value) { remote().put(value, digest_of(value.key_text)); }
  void put() { put(entry); }
  RemoteState state() { return remote().state(); }
  CacheStats stats() const { return counters.snapshot(); }
  void pass_the_pause() { clock.advance(std::chrono::seconds(2)); }

  std::vector<std::string> told() const {
    const std::scoped_lock lock(mutex_);
    return told_;
  }
  int told(std::string_view what) const {
    int count = 0;
    for (const std::string& text : told()) count += text.starts_with(what) ? 1 : 0;
    return count;
  }
  // All that can come before people's eyes.
  std::string all_texts() {
    std::string all = to_string(stats()) + state().reason + state().endpoint;
    for (const std::string& text : told()) all += "\n" + text;
    return all;
  }

  RemoteOptions options;
  TestClock clock;
  const Clock* clock_used = &clock;
  CacheCounters counters;
  Entry entry = sample_entry();
  EventSink events = [this](const Event& event) {
    const std::scoped_lock lock(mutex_);
    const std::string_view level = event.level == EventLevel::warning ? " [warning]" : "";
    told_.push_back(std::string(event.what) + ": " + event.text + std::string(level));
  };

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
  std::unique_ptr<Remote> remote_;
};

// What a busy machine may add to a wait. The failures that are looked for take seconds or for ever.
inline constexpr milliseconds k_slack{1500};

// Answers every command of every connection with the same bytes.
inline std::function<void(Peer&)> answer(std::string reply) {
  return [reply = std::move(reply)](Peer& peer) {
    while (!peer.command().empty()) peer.say(reply);
  };
}

// Answers the first command with these bytes, and closes the connection.
inline std::function<void(Peer&)> answer_and_cut(std::string reply) {
  return [reply = std::move(reply)](Peer& peer) {
    if (!peer.command().empty()) peer.say(reply);
  };
}

inline void never_answer(Peer& peer) {
  peer.say_nothing();
}

template <class Action>
milliseconds time_of(Action action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

inline std::string encoded(const Entry& entry) {
  const auto bytes = encode(entry);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace jitsmith::test
