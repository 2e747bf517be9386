// The counters of CacheStats with their names, once, for whoever prints, adds or sends them. Private.
#pragma once

#include <jitsmith/cache/stats.hpp>

namespace jitsmith {

// Calls `visit(name, &CacheStats::counter)` for each, in the order in which they are printed. A counter is a
// number or ErrorCounts.
template <class Visit>
void for_each_counter(const Visit& visit) {
  visit("hits", &CacheStats::hits);
  visit("bundle_hits", &CacheStats::bundle_hits);
  visit("remote_hits", &CacheStats::remote_hits);
  visit("misses", &CacheStats::misses);
  visit("copied_up", &CacheStats::copied_up);
  visit("corrupt", &CacheStats::corrupt);
  visit("mismatched", &CacheStats::mismatched);
  visit("newer", &CacheStats::newer);
  visit("refused", &CacheStats::refused);
  visit("known_bad", &CacheStats::known_bad);
  visit("read_failed", &CacheStats::read_failed);
  visit("repaired", &CacheStats::repaired);
  visit("repair_failed", &CacheStats::repair_failed);
  visit("written", &CacheStats::written);
  visit("rejected", &CacheStats::rejected);
  visit("skipped", &CacheStats::skipped);
  visit("write_failed", &CacheStats::write_failed);
  visit("bundle_corrupt", &CacheStats::bundle_corrupt);
  visit("bundle_mismatched", &CacheStats::bundle_mismatched);
  visit("remote_corrupt", &CacheStats::remote_corrupt);
  visit("remote_failed", &CacheStats::remote_failed);
  visit("remote_written", &CacheStats::remote_written);
  visit("remote_skipped", &CacheStats::remote_skipped);
  visit("lock_waits", &CacheStats::lock_waits);
  visit("lock_timeouts", &CacheStats::lock_timeouts);
  visit("lock_failed", &CacheStats::lock_failed);
  visit("compiled_unlocked", &CacheStats::compiled_unlocked);
  visit("trims", &CacheStats::trims);
  visit("trimmed", &CacheStats::trimmed);
  visit("trimmed_bytes", &CacheStats::trimmed_bytes);
  visit("swept", &CacheStats::swept);
  visit("trim_failed", &CacheStats::trim_failed);
  visit("out_of_memory", &CacheStats::out_of_memory);
}

}  // namespace jitsmith
