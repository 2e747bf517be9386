// How much a cache directory holds, and when it is worth looking again: decisions over numbers, without a
// disk or a clock.
//
// Between two scans of the directory a process adds its own puts to what it last saw. Other processes write
// as well, so that it looks again now and then: the nearer to a limit the sooner, with 1/64 of the limit at
// the least, which with eight busy writers is at most an eighth too much.
#pragma once

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/cache/trim.hpp>

#include <cstdint>

namespace jitsmith {

struct Usage {
  std::uint64_t bytes = 0;  // blocks on the disk, of entries
  std::uint64_t entries = 0;

  friend bool operator==(const Usage&, const Usage&) = default;
};

// At least zero each.
Usage operator-(const Usage& a, const Usage& b);

bool is_within(const Usage& used, const Usage& most);
bool is_within(const Usage& used, const CacheLimits& limits);

// What a trim should leave: 80 % of each limit that is exceeded, and of the other as much as there is.
Usage trim_goal(const Usage& used, const CacheLimits& limits);

// The same when the disk is full: room for a few entries of the size that found none, and as many inodes;
// never less than 80 % of what is there. No more, for it may be others that fill the disk, and each process
// finds it full for itself.
Usage room_goal(const Usage& used, std::uint64_t needed_bytes);

// Thread safe, and usable in a forked child.
class UsageEstimate {
 public:
  explicit UsageEstimate(const CacheLimits& limits) : limits_(limits) {}

  enum class Due { nothing, scan, trim };

  // What is to be done after a put of a file of `size_bytes`. Without limits: nothing, ever.
  Due note_put(std::uint64_t size_bytes);

  // What is to be done without a further put.
  Due due() const;

  // What a scan or a trim found, or left.
  void reseed(const Usage& found);

  // As at the start: the next put asks for a scan.
  void forget();

  Usage now() const;

 private:
  struct State {
    bool is_seeded = false;
    bool is_stuck = false;  // over a limit when last seen: what is there could not be removed
    Usage total;
    Usage own_since_scan;
  };

  Due due_of(const State& state) const;

  CacheLimits limits_;
  mutable ForkGuarded<State> state_;
};

}  // namespace jitsmith
