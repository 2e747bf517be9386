#include <jitsmith/cache/usage.hpp>

#include <algorithm>
#include <limits>

namespace jitsmith {
namespace {

constexpr std::uint64_t k_no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t k_block_bytes = 4096;  // of nearly every file system

std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
  return a - std::min(a, b);
}

std::uint64_t four_fifths(std::uint64_t value) {
  return value - value / 5 - (value % 5 != 0 ? 1 : 0);  // rounded down; value * 4 could overflow
}

std::uint64_t or_none(std::uint64_t limit) {
  return limit == 0 ? k_no_limit : limit;
}

// How much of its own puts a process adds before it looks at the directory again.
std::uint64_t scan_interval(std::uint64_t limit, std::uint64_t total) {
  return limit == 0 ? k_no_limit : std::clamp(minus(limit, total) / 8, limit / 64, limit / 16);
}

}  // namespace

Usage operator-(const Usage& a, const Usage& b) {
  return {minus(a.bytes, b.bytes), minus(a.entries, b.entries)};
}

bool is_within(const Usage& used, const Usage& most) {
  return used.bytes <= most.bytes && used.entries <= most.entries;
}

bool is_within(const Usage& used, const CacheLimits& limits) {
  return is_within(used, Usage{or_none(limits.max_bytes), or_none(limits.max_entries)});
}

Usage trim_goal(const Usage& used, const CacheLimits& limits) {
  Usage goal = used;
  if (used.bytes > or_none(limits.max_bytes)) goal.bytes = four_fifths(limits.max_bytes);
  if (used.entries > or_none(limits.max_entries)) goal.entries = four_fifths(limits.max_entries);
  return goal;
}

Usage room_goal(const Usage& used, std::uint64_t needed_bytes) {
  const Usage few = used - Usage{8 * needed_bytes, 8};
  return {std::max(few.bytes, four_fifths(used.bytes)), std::max(few.entries, four_fifths(used.entries))};
}

UsageEstimate::Due UsageEstimate::note_put(std::uint64_t size_bytes) {
  const std::uint64_t on_disk = (size_bytes + k_block_bytes - 1) / k_block_bytes * k_block_bytes;
  return state_.with([&](State& state) {
    for (Usage* const usage : {&state.total, &state.own_since_scan}) {
      usage->bytes += on_disk;
      ++usage->entries;
    }
    return due_of(state);
  });
}

UsageEstimate::Due UsageEstimate::due() const {
  return state_.with([&](const State& state) { return due_of(state); });
}

void UsageEstimate::reseed(const Usage& found) {
  state_.with([&](State& state) { state = {true, !is_within(found, limits_), found, {}}; });
}

void UsageEstimate::forget() {
  state_.with([](State& state) { state = {}; });
}

Usage UsageEstimate::now() const {
  return state_.with([](const State& state) { return state.total; });
}

UsageEstimate::Due UsageEstimate::due_of(const State& state) const {
  if (limits_.max_bytes == 0 && limits_.max_entries == 0) return Due::nothing;
  if (!state.is_seeded) return Due::scan;
  const bool is_full = !is_within(state.total, limits_);
  const Usage interval{scan_interval(limits_.max_bytes, state.total.bytes),
                       scan_interval(limits_.max_entries, state.total.entries)};
  // What a trim could not bring down a moment ago, the next put need not try again.
  if (is_within(state.own_since_scan, interval)) return is_full && !state.is_stuck ? Due::trim : Due::nothing;
  return is_full ? Due::trim : Due::scan;
}

}  // namespace jitsmith
