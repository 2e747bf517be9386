// Decides whether it is worth trying to write, after writes that failed.
//
// A full disk often has room again in a minute; a read-only or forbidden one will not change while the
// process runs. Any other failure (no descriptors, input/output errors, a stale handle) says nothing about
// the next write. Thread safe, and usable in a forked child.
#pragma once

#include <jitsmith/cache/fork_mutex.hpp>

#include <chrono>
#include <optional>

namespace jitsmith {

// ENOSPC or EDQUOT.
bool is_full_disk(int error);

class WriteGate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds k_full_disk_pause{60};

  struct Closed {
    int error = 0;  // the errno that closed it
    bool for_good = false;
  };

  // Nothing when the gate is open.
  std::optional<Closed> closed(TimePoint now) const;

  // Takes note of a failed write. True when this call has closed the gate.
  bool note_failure(int error, TimePoint now);

 private:
  struct State {
    Closed cause;
    TimePoint reopens_at{};  // the past: open from the start
  };

  mutable ForkGuarded<State> state_;
};

}  // namespace jitsmith
