// The cache as the rest of jitsmith sees it: entries by key, on disk, and a promise that no state of the disk
// can fail, hang or change a launch. get returns right bytes or nothing; put reports and never throws.
//
// Thread safe. Without a usable directory everything still works, and nothing is found or stored.
#pragma once

#include <jitsmith/cache/clock.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/directory.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/cache/stats.hpp>
#include <jitsmith/cache/store.hpp>

#include <functional>
#include <optional>
#include <string_view>

namespace jitsmith {

struct CacheOptions {
  DirectoryRequest directory;
  EventSink events;                   // what it throws is swallowed
  FileSystem* file_system = nullptr;  // the real one; must outlive the cache
  const Clock* clock = nullptr;       // likewise
};

class Cache {
 public:
  // Throws std::bad_alloc and nothing else.
  explicit Cache(CacheOptions options);

  // `digest` must be digest_of(key_text). Wrong digests find nothing, they do not find a wrong entry.
  std::optional<Entry> get(std::string_view key_text, const Digest& digest) noexcept;
  std::optional<Entry> get(std::string_view key_text) noexcept { return get(key_text, digest_of(key_text)); }

  PutResult put(const Entry& entry) noexcept { return put(entry, digest_of(entry.key_text)); }
  PutResult put(const Entry& entry, const Digest& digest) noexcept;

  // For an entry that verified and still turned out to be useless. True when it is gone.
  bool remove(const Digest& digest) noexcept;

  // The state now: a directory that stopped taking writes is reported read-only, with the reason.
  DirectoryState state() const;
  CacheStats stats() const { return counters_.snapshot(); }

  // Reads and verifies every entry. Throws what `visit` throws, and std::bad_alloc.
  void list(const std::function<void(const ListedEntry&)>& visit) const;

  ClearResult clear() noexcept;

 private:
  FileSystem& file_system_;
  Clock default_clock_;
  const Clock& clock_;
  EventSink events_;
  CacheCounters counters_;
  DirectoryState state_;
  std::optional<Store> store_;  // none when the directory is off
};

}  // namespace jitsmith
