// What the cache did, in numbers. Whatever it refuses, drops or skips is counted here under its cause.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace jitsmith {

using ErrorCounts = std::map<int, std::uint64_t>;  // by errno

struct CacheStats {
  // Every get is one of these two.
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;

  // Why a get missed, when it is not simply that there was no entry.
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

  std::uint64_t out_of_memory = 0;  // given up half-way
};

// "hits=3 misses=1 ... write_failed=2 (ENOSPC=2)", on one line.
std::string to_string(const CacheStats& stats);

// Thread safe. The lock is held for an addition, never for a system call.
class CacheCounters {
 public:
  void add(std::uint64_t CacheStats::*counter);
  void add(ErrorCounts CacheStats::*counters, int error);
  CacheStats snapshot() const;

 private:
  mutable std::mutex mutex_;
  CacheStats stats_;
};

}  // namespace jitsmith

template <>
struct fmt::formatter<jitsmith::CacheStats> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const jitsmith::CacheStats& stats, Context& context) const {
    return fmt::formatter<std::string_view>::format(jitsmith::to_string(stats), context);
  }
};
