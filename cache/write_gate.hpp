// Decides whether it is worth trying to write, after writes that failed.
//
// A full disk often has room again in a minute; a read-only or forbidden one will not change while the
// process runs. Any other failure (no descriptors, input/output errors, a stale handle) says nothing about
// the next write.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

namespace jitsmith {

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
  mutable std::mutex mutex_;
  Closed cause_;
  TimePoint reopens_at_{};  // the past: open from the start
};

}  // namespace jitsmith
