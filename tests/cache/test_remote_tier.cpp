// The remote tier as a part of the cache: what is asked when, and what is copied up.
#include "../support/stub_server.hpp"
#include "../support/temp_dir.hpp"
#include "remote_bench.hpp"

#include <jitsmith/cache/cache.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <mutex>

using namespace jitsmith;
using namespace jitsmith::test;
using namespace std::chrono_literals;

namespace {

// A server as it should be.
class StubRedis {
 public:
  std::uint16_t port() const { return server_.port(); }
  int commands() const { return commands_; }
  void set(const std::string& key, const std::string& value) {
    const std::scoped_lock lock(mutex_);
    values_[key] = value;
  }
  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return values_.size();
  }

 private:
  std::string answer(const std::vector<std::string>& words) {
    ++commands_;
    if (words[0] == "PING") return "+PONG\r\n";
    const std::scoped_lock lock(mutex_);
    if (words[0] == "SET") {
      values_[words[1]] = words[2];
      return "+OK\r\n";
    }
    const auto value = values_.find(words[1]);
    return value == values_.end() ? "$-1\r\n" : bulk(value->second);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::atomic<int> commands_ = 0;
  StubServer server_{[this](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command()) peer.say(answer(words));
  }};
};

CacheOptions with_remote(const std::filesystem::path& root, std::uint16_t port) {
  CacheOptions options{.directory = at(root)};
  options.remote.url = fmt::format("redis://127.0.0.1:{}", port);
  options.remote.connect_timeout = 5s;
  options.remote.operation_timeout = 10s;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("Cache");

TEST_CASE("A hit of the remote tier is copied to the cache directory, and counted") {
  StubRedis redis;
  const TempDir temp;
  const Entry entry = sample_entry();
  {
    Cache writer(with_remote(temp / "one", redis.port()));
    CHECK(writer.put(entry) == PutResult::stored);
    CHECK(writer.stats().remote_written == 1);
  }
  CHECK(redis.size() == 1);
  Cache cache(with_remote(temp / "two", redis.port()));
  const auto first = cache.get(entry.key_text);
  REQUIRE(first);
  CHECK(first->entry == entry);
  CHECK(first->tier == Tier::remote);
  CHECK(files_below(temp / "two").size() == 1);
  const int commands = redis.commands();
  const auto second = cache.get(entry.key_text);
  REQUIRE(second);
  CHECK(second->entry == entry);
  CHECK(second->tier == Tier::directory);
  CHECK(redis.commands() == commands);
  CHECK(cache.stats().remote_hits == 1);
  CHECK(cache.stats().hits == 1);
  CHECK(cache.stats().copied_up == 1);
  CHECK(cache.stats().misses == 0);
}

TEST_CASE("A damaged value of the remote tier is a miss, is not copied, and is replaced by the next put") {
  StubRedis redis;
  const TempDir temp;
  const Entry entry = sample_entry();
  std::string damaged = encoded(entry);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  redis.set("jitsmith:v1:" + digest_of(entry.key_text).hex(), damaged);
  Cache cache(with_remote(temp / "one", redis.port()));
  CHECK_FALSE(cache.get(entry.key_text));
  CHECK(cache.stats().remote_corrupt == 1);
  CHECK(cache.stats().misses == 1);
  CHECK(files_below(temp / "one").empty());
  cache.put(entry);
  Cache other(with_remote(temp / "two", redis.port()));
  const auto got = other.get(entry.key_text);
  REQUIRE(got);
  CHECK(got->entry == entry);
}

TEST_CASE("The remote tier serves where there is no cache directory") {
  StubRedis redis;
  const TempDir temp;
  const Entry entry = sample_entry();
  CacheOptions options = with_remote(temp / "one", redis.port());
  options.directory.enabled = false;
  Cache cache(std::move(options));
  CHECK(cache.put(entry) == PutResult::off);
  const auto got = cache.get(entry.key_text);
  REQUIRE(got);
  CHECK(got->tier == Tier::remote);
  CHECK(cache.stats().copied_up == 0);
  CHECK(cache.ping_remote());
}

TEST_CASE("F39: Without its server the cache works from its directory [fault]") {
  const TempDir temp;
  const Entry entry = sample_entry();
  Cache cache(with_remote(temp / "one", free_port()));
  CHECK_FALSE(cache.get(entry.key_text));
  CHECK(cache.put(entry) == PutResult::stored);
  CHECK(cache.get(entry.key_text)->entry == entry);
  CHECK(cache.stats().remote_failed == 1);
  CHECK(cache.stats().remote_skipped == 1);
  CHECK(cache.remote_state().usable);
  CHECK_FALSE(cache.ping_remote());
}

TEST_CASE("A remote tier that cannot be used is told of once, when the cache is made") {
  const TempDir temp;
  std::vector<std::string> told;
  CacheOptions options{.directory = at(temp / "one")};
  options.remote.url = "redis://u:hunter2@";
  options.events = [&](const Event& event) {
    if (event.level == EventLevel::warning) told.push_back(std::string(event.what) + ": " + event.text);
  };
  Cache cache(std::move(options));
  CHECK_FALSE(cache.get(sample_entry().key_text));
  REQUIRE(told.size() == 1);
  CHECK(told.front().starts_with("remote.off: the host"));
  CHECK_FALSE(holds(told.front(), "hunter2"));
  CHECK(cache.remote_state().configured);
  CHECK_FALSE(cache.remote_state().usable);
}

TEST_SUITE_END();
