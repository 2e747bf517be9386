// The remote tier: entries that a fleet of machines shares through a Redis server. It is as trusted as the
// program itself; what it answers is verified like any entry, which finds damage and not malice.
//
// No trouble of the server or the network costs more than a bounded time: connecting and each operation have
// a deadline, trouble is summed up (failures, and what answers take beyond 50 ms), and when it reaches the
// budget the tier is off for the rest of the process, with the reason. After trouble the server is left alone
// for a moment first. There are no locks between machines: a duplicate compile of some tens of milliseconds
// is cheaper than a protocol.
#pragma once

#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

enum class RemoteMode { read_write, read_only };

struct RemoteOptions {
  std::string url;  // redis[s]://[user[:password]@]host[:port][/database]; empty: no remote tier
  RemoteMode mode = RemoteMode::read_write;
  std::chrono::milliseconds connect_timeout{100};
  std::chrono::milliseconds operation_timeout{500};
  std::chrono::milliseconds trouble_budget{2000};  // of waiting for a server that does not serve
  std::chrono::milliseconds pause{1000};           // after trouble
};

struct RemoteState {
  bool configured = false;
  bool usable = false;   // unless it was switched off
  std::string endpoint;  // "redis://cache.example:6379/0": never with user or password
  std::string reason;    // one sentence, when not usable, or at present left alone or not written
};

class Remote {
 public:
  virtual ~Remote() = default;

  // The entry whose key text is `key_text`, verified. Throws std::bad_alloc and nothing else. Thread safe, as
  // all of this; a forked child makes a connection of its own.
  virtual std::optional<Entry> get(std::string_view key_text, const Digest& digest) = 0;

  // Ignored when read-only, off, or in a pause.
  virtual void put(const Entry& entry, const Digest& digest) = 0;

  // Asks the server for a sign of life, within the deadlines: for people who want to know. False: see
  // state().
  virtual bool ping() = 0;

  virtual RemoteState state() const = 0;
};

// Connects to nothing yet. For a URL that cannot be used, or a build without hiredis, the result is off from
// the start and says why. Null for an empty URL.
std::unique_ptr<Remote> make_remote(const CacheContext& context, const RemoteOptions& options);

}  // namespace jitsmith
