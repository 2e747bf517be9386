// The part of Store that keeps the directory within its limits.
//
// Known races, all of which cost a compile at the worst: an entry that was used or replaced after it was seen
// is removed all the same; and where there are no locks, two trim at once, and each removes what it saw.
#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/plural.hpp>
#include <jitsmith/cache/store.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace jitsmith {
namespace {

// A put that exceeds a limit while another one trims waits so long for its turn: without, a few busy writers
// publish faster than one of them can remove, and the directory grows as long as they go on.
constexpr std::chrono::milliseconds k_back_pressure{250};
constexpr std::chrono::milliseconds k_pause{5};

using WallTime = std::chrono::system_clock::time_point;

std::uint64_t bytes_on_disk(const struct ::stat& stat) {
  return static_cast<std::uint64_t>(stat.st_blocks) * 512;
}

// A time in the future is that of a wrong clock, and says nothing but "not lately", unless it is so near that
// the clocks of two machines can differ by as much.
bool is_older_than(WallTime now, WallTime then, std::chrono::seconds limit) {
  return std::chrono::abs(now - then) >= limit;
}

}  // namespace

// What a walk over the directory has seen.
struct Store::Sighting {
  // As small as can be, for there may be a hundred thousand: the name follows from the digest.
  struct Old {
    WallTime used;
    Digest digest;
    std::uint64_t bytes = 0;
  };

  Usage used;
  std::vector<Old> old;     // what may be removed, in no order
  std::uint64_t young = 0;  // entries that may not be, for their age
};

void Store::note_stored(std::uint64_t size_bytes) {
  UsageEstimate::Due due = usage_.note_put(size_bytes);
  if (due == UsageEstimate::Due::scan) {
    const std::unique_lock alone(tidying_, std::try_to_lock);
    if (!alone.owns_lock()) return;                              // another thread is at it
    if (usage_.due() == UsageEstimate::Due::scan) due = scan();  // else another thread has been since
  }
  if (due == UsageEstimate::Due::trim) trim_as_only_one({limits_}, k_back_pressure);
}

// A program often stores one kernel in its life, and should not walk over ten thousand others for it. Digests
// are spread evenly, so a few shards tell roughly what all hold; only a directory that is small, or may be
// near its limits, is walked over.
UsageEstimate::Due Store::scan() {
  TrimResult ignored;
  constexpr unsigned k_sampled_shards = 8, k_sampled_part = k_shard_count / k_sampled_shards;
  constexpr std::uint64_t k_few = 64;  // in the sample: 2000 in all, which take a millisecond or two
  const Usage sample = look(TrimMode::remove, false, ignored, k_sampled_part).used;
  const Usage all{sample.bytes * k_sampled_part, sample.entries * k_sampled_part};
  const bool is_far_from_limits = is_within({2 * all.bytes, 2 * all.entries}, limits_);
  usage_.reseed(
      sample.entries > k_few && is_far_from_limits ? all : look(TrimMode::remove, false, ignored, 1).used);
  return is_within(usage_.now(), limits_) ? UsageEstimate::Due::nothing : UsageEstimate::Due::trim;
}

TrimResult Store::trim(const CacheLimits& limits, TrimMode mode) {
  const bool allowed =
      access_ == StoreAccess::own || (access_ == StoreAccess::look_only && mode == TrimMode::dry_run);
  if (!allowed) return {};
  return mode == TrimMode::dry_run ? trim_now({limits}, mode) : trim_as_only_one({limits}, {});
}

TrimResult Store::trim_as_only_one(const TrimOrder& order, std::chrono::milliseconds patience) {
  const auto give_up = context_.clock.steady() + patience;
  std::optional<TrimResult> result = trim_unless_busy(order);
  while (!result && context_.clock.steady() < give_up) {
    context_.clock.sleep(k_pause);
    result = trim_unless_busy(order);
  }
  if (!result) return {.left_to_another = true};
  tell_trimmed(*result, order);
  return *result;
}

// Nothing while another thread or process trims.
std::optional<TrimResult> Store::trim_unless_busy(const TrimOrder& order) {
  const std::unique_lock alone(tidying_, std::try_to_lock);
  if (!alone.owns_lock()) return std::nullopt;
  const Descriptor locks = open_locks();
  const int locked = locks.is_open() ? context_.file_system.lock_byte(locks.get(), k_trim_lock_byte) : 0;
  if (locked == -EAGAIN) return std::nullopt;
  if (locked < 0) context_.counters.add(&CacheStats::lock_failed, -locked);
  return trim_now(order, TrimMode::remove);
}

TrimResult Store::trim_now(const TrimOrder& order, TrimMode mode) {
  TrimResult result;
  Sighting seen = look(mode, true, result, 1);
  result.entries = seen.used.entries;
  result.bytes = seen.used.bytes;
  const Usage goal =
      order.room_bytes == 0 ? trim_goal(seen.used, order.limits) : room_goal(seen.used, order.room_bytes);
  remove_oldest(seen, goal, mode, result);
  if (!is_within(seen.used, order.limits)) result.spared = seen.young;
  if (mode == TrimMode::remove) usage_.reseed(seen.used);
  return result;
}

// Every `step`-th shard. Also sweeps, for a temporary file of that age has no living writer, whoever looks.
Store::Sighting Store::look(TrimMode mode, bool with_entries, TrimResult& result, unsigned step) {
  Sighting seen;
  const WallTime now = context_.clock.wall();
  const ErrorCounts unread = walk(
      [&](const OwnFile& file) {
        if (file.error != 0) return note_trim_failure(file.error, mode, result);
        if (!S_ISREG(file.stat.st_mode)) return;  // not one that we made
        const WallTime used = modification_time(file.stat);
        if (!file.digest) {
          // A younger one counts for nothing: writers that die often would drive out the entries with what
          // they leave.
          if (is_older_than(now, used, k_leftover_age)) sweep(file, mode, result);
          return;
        }
        const std::uint64_t bytes = bytes_on_disk(file.stat);
        seen.used.bytes += bytes;
        ++seen.used.entries;
        if (!is_older_than(now, used, k_trim_grace))
          ++seen.young;
        else if (with_entries)
          seen.old.push_back({used > now ? WallTime::min() : used, *file.digest, bytes});
      },
      step);
  for (const auto& [error, times] : unread)
    for (std::uint64_t i = 0; i < times; ++i) note_trim_failure(error, mode, result);
  return seen;
}

void Store::sweep(const OwnFile& file, TrimMode mode, TrimResult& result) {
  const int error = mode == TrimMode::remove ? -context_.file_system.unlink_at(file.shard, file.name) : 0;
  if (error == ENOENT) return;  // swept by another process, which has counted it
  if (error != 0) return note_trim_failure(error, mode, result);
  ++result.swept;
  if (mode == TrimMode::remove) context_.counters.add(&CacheStats::swept);
}

void Store::remove_oldest(Sighting& seen, const Usage& goal, TrimMode mode, TrimResult& result) {
  std::ranges::sort(seen.old, {}, [](const Sighting::Old& old) { return std::pair(old.used, old.digest); });
  for (std::size_t begin = 0; begin < seen.old.size() && !is_within(seen.used, goal);) {
    // As many as it takes. Where some cannot be removed, younger ones go in their place.
    std::size_t end = begin;
    for (Usage left = seen.used; end < seen.old.size() && !is_within(left, goal); ++end)
      left = left - Usage{seen.old[end].bytes, 1};
    remove_batch(seen, begin, end, mode, result);
    begin = end;
  }
}

// Shard by shard: each is opened and vetted once, and its blocks are written once.
void Store::remove_batch(Sighting& seen, std::size_t begin, std::size_t end, TrimMode mode,
                         TrimResult& result) {
  const std::span batch = std::span(seen.old).subspan(begin, end - begin);
  std::ranges::sort(batch, {}, &Sighting::Old::digest);
  std::string name;
  PrivateDirectory shard;
  for (const Sighting::Old& old : batch) {
    int error = 0;
    if (mode == TrimMode::remove) {
      if (std::string of_this = shard_name(old.digest); of_this != name) {
        name = std::move(of_this);
        shard = open_shard(name, IfMissing::fail);
      }
      error = unlink_entry(shard, old.digest);
    }
    if (error != 0 && error != ENOENT) {
      note_trim_failure(error, mode, result);
      continue;
    }
    seen.used = seen.used - Usage{old.bytes, 1};
    if (error == ENOENT) continue;  // removed by another process, which has counted it
    ++result.removed_entries;
    result.removed_bytes += old.bytes;
  }
}

void Store::note_trim_failure(int error, TrimMode mode, TrimResult& result) {
  ++result.failed;
  if (mode == TrimMode::remove) context_.counters.add(&CacheStats::trim_failed, error);
}

void Store::tell_trimmed(const TrimResult& result, const TrimOrder& order) {
  if (result.removed_entries + result.swept + result.failed == 0) return;
  context_.counters.add(&CacheStats::trims);
  context_.counters.add(&CacheStats::trimmed, result.removed_entries);
  context_.counters.add(&CacheStats::trimmed_bytes, result.removed_bytes);
  context_.tell(EventLevel::info, "cache.trimmed",
                fmt::format("{}: removed {} of {} ({} of {} bytes), the least recently used first, and {} of "
                            "dead writers; {} could not be removed",
                            order.room_bytes == 0 ? "the cache directory was brought under its limits"
                                                  : "the disk is full",
                            result.removed_entries, plural(result.entries, "entry"), result.removed_bytes,
                            result.bytes, plural(result.swept, "leftover"), plural(result.failed, "file")));
}

}  // namespace jitsmith
