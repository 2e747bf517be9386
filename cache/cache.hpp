// The cache as the rest of jitsmith sees it: entries by key, in up to three tiers, and a promise that no
// state of the disk or the network can fail, hang or change a launch. get returns right bytes or nothing; put
// reports and never throws.
//
// The tiers are asked in order: the cache directory, the bundles in their order, the remote tier. A hit of a
// lower one is copied to the cache directory, unless it is only looked at. Thread safe, and usable in a
// forked child. Without any tier everything still works, and nothing is found or stored.
#pragma once

#include <jitsmith/cache/build_lock.hpp>
#include <jitsmith/cache/bundle.hpp>
#include <jitsmith/cache/clock.hpp>
#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/directory.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/cache/listed_entry.hpp>
#include <jitsmith/cache/remote.hpp>
#include <jitsmith/cache/stats.hpp>
#include <jitsmith/cache/store.hpp>
#include <jitsmith/cache/trim.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

struct CacheOptions {
  DirectoryRequest directory;
  CacheLimits limits;
  std::chrono::milliseconds lock_wait{30'000};  // for another process that compiles the same key
  std::vector<std::string> bundles;             // absolute paths of directories or files, in order
  RemoteOptions remote;
  // For questions: nothing is made, stored, removed or marked as used in any tier. A directory that is not
  // there is then an empty one.
  bool look_only = false;
  EventSink events;                   // what it throws is swallowed
  FileSystem* file_system = nullptr;  // the real one; must outlive the cache
  const Clock* clock = nullptr;       // likewise
};

enum class Tier { directory, bundle, remote };

std::string_view to_string(Tier tier);

struct Found {
  Entry entry;
  Tier tier = Tier::directory;
};

class Cache {
 public:
  // Throws std::bad_alloc and nothing else.
  explicit Cache(CacheOptions options);

  // `digest` must be digest_of(key_text). Wrong digests find nothing, they do not find a wrong entry.
  std::optional<Found> get(std::string_view key_text, const Digest& digest) noexcept;
  std::optional<Found> get(std::string_view key_text) noexcept { return get(key_text, digest_of(key_text)); }

  // Into the cache directory and the remote tier; the result is that of the directory.
  PutResult put(const Entry& entry) noexcept { return put(entry, digest_of(entry.key_text)); }
  PutResult put(const Entry& entry, const Digest& digest) noexcept;

  // Waits, a bounded time, while another process compiles this key: hold the result during get, compile and
  // put. `what` is for the message to people. Without a usable directory there is nothing to wait for.
  BuildLock lock_build(const Digest& digest, std::string_view what) noexcept;

  // Under that lock: what another process or thread may have stored since the get that missed. Asks the
  // directory alone, and counts no second miss.
  std::optional<Found> get_again(std::string_view key_text, const Digest& digest) noexcept;

  // To be told of a compile that no lock guarded: counts it.
  void note_unlocked_compile() { counters_.add(&CacheStats::compiled_unlocked); }

  // For an entry of the directory that verified and still turned out to be useless. True when it is gone.
  bool remove(const Digest& digest) noexcept;

  // The state now: a directory that stopped taking writes is reported read-only, with the reason.
  DirectoryState state() const;
  std::vector<BundleState> bundle_states() const;
  RemoteState remote_state() const;
  bool ping_remote() noexcept;  // false: see remote_state()
  const CacheLimits& limits() const { return limits_; }
  CacheStats stats() const { return counters_.snapshot(); }

  // Reads and verifies every entry of the directory, of all bundles, or of the one that has this index in
  // bundle_states(), one after another. Throws what `visit` throws, and std::bad_alloc.
  void list(const EntryVisitor& visit) const;
  void list_bundles(const EntryVisitor& visit) const;
  void list_bundle(std::size_t index, const EntryVisitor& visit) const;

  ClearResult clear() noexcept;
  TrimResult trim(const CacheLimits& limits, TrimMode mode) noexcept;

 private:
  CacheContext context() const { return {file_system_, clock_, counters_, events_}; }
  std::optional<Found> find(std::string_view key_text, const Digest& digest);
  void copy_up(const Entry& entry, const Digest& digest) noexcept;
  void tell_outcome(const Digest& digest, const std::optional<Found>& found);

  FileSystem& file_system_;
  Clock default_clock_;
  const Clock& clock_;
  EventSink events_;
  mutable CacheCounters counters_;
  CacheLimits limits_;
  std::chrono::milliseconds lock_wait_;
  bool look_only_;
  DirectoryState state_;
  std::optional<Store> store_;  // none when the directory is off
  std::vector<std::unique_ptr<Bundle>> bundles_;
  std::unique_ptr<Remote> remote_;
};

}  // namespace jitsmith
