// The part of Store that locks one key at a time, so that of several who miss an entry one compiles.
#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/store.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

namespace jitsmith {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds k_shortest_pause{1}, k_longest_pause{50};
constexpr std::chrono::seconds k_patience{1};       // before people are told
constexpr std::chrono::hours k_longest_wait{1000};  // whatever is asked for: its nanoseconds can be added up

// Pauses that grow from 1 to 50 ms, each shortened at random by up to a half, so that those who began to wait
// together do not go on asking together.
class BackOff {
 public:
  explicit BackOff(std::chrono::steady_clock::time_point now)
      : random_(static_cast<std::minstd_rand::result_type>(now.time_since_epoch().count() ^ ::getpid())) {}

  nanoseconds next() {
    const nanoseconds longest = std::exchange(pause_, std::min<nanoseconds>(pause_ * 2, k_longest_pause));
    return longest - longest * static_cast<int>(random_() % 512) / 1024;
  }

 private:
  std::minstd_rand random_;
  nanoseconds pause_ = k_shortest_pause;
};

std::string in_seconds(nanoseconds time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

// A file without a name is one that newcomers cannot find: they lock another one.
bool is_removed(FileSystem& fs, int file) {
  struct ::stat stat {};
  return fs.stat(file, stat) == 0 && stat.st_nlink == 0;
}

}  // namespace

Descriptor Store::open_locks() {
  PrivateFile locks = open_private_file(context_.file_system, entries_.get(), k_locks_name);
  if (locks.is_usable()) return std::move(locks.file);
  if (locks.error != 0) {
    context_.counters.add(&CacheStats::lock_failed, locks.error);
    return {};
  }
  context_.counters.add(&CacheStats::refused);
  context_.tell(EventLevel::warning, "cache.refused",
                fmt::format("the file {} of the cache directory {}, so nothing is locked with it; remove it",
                            k_locks_name, describe(locks.vetting)));
  return {};
}

bool Store::is_there(const Digest& digest) const {
  const PrivateDirectory shard = open_shard(shard_name(digest), IfMissing::fail);
  struct ::stat stat {};
  return shard.is_usable() &&
         context_.file_system.stat_at(shard.directory.get(), entry_name(digest).c_str(), stat) == 0;
}

BuildLock Store::lock_build(const Digest& digest, std::string_view what, std::chrono::milliseconds max_wait) {
  BuildLock lock;
  if (writes_closed()) return lock;
  Descriptor file = open_locks();
  if (!file.is_open()) return lock;

  const auto start = context_.clock.steady();
  const nanoseconds limit =
      std::clamp<std::chrono::milliseconds>(max_wait, std::chrono::milliseconds(0), k_longest_wait);
  BackOff back_off(start);
  for (bool has_waited = false, is_told = false;;) {
    int result = context_.file_system.lock_byte(file.get(), build_lock_byte(digest));
    if (result == 0) {
      lock.outcome = LockOutcome::held;
      lock.file = std::move(file);
      return lock;
    }
    if (result == -EAGAIN && is_removed(context_.file_system, file.get())) result = -ENOENT;
    if (result != -EAGAIN) {
      context_.counters.add(&CacheStats::lock_failed, -result);
      return lock;
    }
    if (!std::exchange(has_waited, true)) context_.counters.add(&CacheStats::lock_waits);

    // The holder publishes before it lets go, and a child that it forked may keep the lock for long.
    if (is_there(digest)) {
      lock.outcome = LockOutcome::stored;
      return lock;
    }
    const nanoseconds waited = context_.clock.steady() - start;
    if (waited >= limit) {
      lock.outcome = LockOutcome::timed_out;
      context_.counters.add(&CacheStats::lock_timeouts);
      context_.tell(EventLevel::warning, "cache.lock_timeout",
                    fmt::format("{} has been locked by another process or thread for {}, the longest that is "
                                "waited for a compile; it is compiled here as well, so look for a process "
                                "that is stopped or very slow",
                                what, in_seconds(waited)));
      return lock;
    }
    if (waited > k_patience && !std::exchange(is_told, true)) {
      context_.tell(EventLevel::warning, "cache.wait",
                    fmt::format("{} has been waited for {} while another process or thread compiles it; "
                                "after {} it will be compiled here as well",
                                what, in_seconds(waited), in_seconds(limit)));
    }
    context_.clock.sleep(std::min(back_off.next(), limit - waited));
  }
}

}  // namespace jitsmith
