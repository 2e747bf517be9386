// What the cache did, in numbers. Whatever it refuses, drops or skips is counted here under its cause.
#pragma once

#include <jitsmith/cache/fork_mutex.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace jitsmith {

using ErrorCounts = std::map<int, std::uint64_t>;  // by errno

struct CacheStats {
  // Every get is one of these four. One that missed, and then hit under the lock of a compile, is a miss and
  // a hit.
  std::uint64_t hits = 0;         // in the cache directory
  std::uint64_t bundle_hits = 0;  // in a bundle
  std::uint64_t remote_hits = 0;  // in the remote tier
  std::uint64_t misses = 0;

  std::uint64_t copied_up = 0;  // hits of a lower tier that were stored in the cache directory

  // Why the cache directory had nothing, when it is not simply that there was no entry.
  std::uint64_t corrupt = 0;     // damaged bytes
  std::uint64_t mismatched = 0;  // a sound entry of another key
  std::uint64_t newer = 0;       // a sound entry of a later version of jitsmith
  std::uint64_t refused = 0;  // wrong type, owner, mode or size: not trusted, not read (puts count here too)
  std::uint64_t known_bad = 0;  // seen damaged before and impossible to remove: not read again
  ErrorCounts read_failed;

  std::uint64_t repaired = 0;       // damaged entries removed
  std::uint64_t repair_failed = 0;  // damaged entries that could not be removed

  std::uint64_t written = 0;
  std::uint64_t rejected = 0;  // not worth storing: no key, not an ELF image, too large
  std::uint64_t skipped = 0;   // not tried, because writing is off
  ErrorCounts write_failed;

  std::uint64_t bundle_corrupt = 0;     // entries of bundles that do not verify
  std::uint64_t bundle_mismatched = 0;  // sound ones of another key, or of a later version of jitsmith

  std::uint64_t remote_corrupt = 0;  // values that are no sound entry of the key
  std::uint64_t remote_failed = 0;   // operations that failed or took too long
  std::uint64_t remote_written = 0;
  std::uint64_t remote_skipped = 0;  // operations not tried: after trouble, or while the tier is off

  // Locks that keep two processes from compiling one key at once.
  std::uint64_t lock_waits = 0;         // held by another process or thread at first
  std::uint64_t lock_timeouts = 0;      // still held when the wait was over
  ErrorCounts lock_failed;              // no lock to be had: went on without
  std::uint64_t compiled_unlocked = 0;  // stored after a compile that no lock guarded: perhaps a duplicate

  std::uint64_t trims = 0;    // passes over the directory that removed something, or tried to
  std::uint64_t trimmed = 0;  // entries removed to keep to the limits
  std::uint64_t trimmed_bytes = 0;
  std::uint64_t swept = 0;  // temporary files of dead writers removed
  ErrorCounts trim_failed;  // files that could not be removed, folders that could not be read

  std::uint64_t out_of_memory = 0;  // given up half-way
};

// "hits=3 misses=1 ... write_failed=2 (ENOSPC=2)", on one line.
std::string to_string(const CacheStats& stats);

CacheStats& operator+=(CacheStats& sum, const CacheStats& more);
CacheStats operator-(CacheStats now, const CacheStats& before);  // what was counted since

// Thread safe. The lock is held for an addition, never for a system call. A forked child goes on from its
// parent's numbers, or from zero if it was forked during an addition.
class CacheCounters {
 public:
  void add(std::uint64_t CacheStats::*counter, std::uint64_t amount = 1);
  void add(ErrorCounts CacheStats::*counters, int error);
  CacheStats snapshot() const;

 private:
  mutable ForkGuarded<CacheStats> stats_;
};

}  // namespace jitsmith

template <>
struct fmt::formatter<jitsmith::CacheStats> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const jitsmith::CacheStats& stats, Context& context) const {
    return fmt::formatter<std::string_view>::format(jitsmith::to_string(stats), context);
  }
};
