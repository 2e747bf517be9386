// Decides whether it is worth asking the remote tier, after operations that failed.
//
// Pure bookkeeping over times that it is given. It holds numbers only, so that a child that was forked while
// a thread of the parent was in here finds something sensible: what is known of the server holds for it, too.
#pragma once

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/cache/redis_failure.hpp>

#include <chrono>
#include <optional>

namespace jitsmith {

class RemoteGate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // Full or unable to save: often cured in a minute, as a full disk is.
  static constexpr std::chrono::seconds k_write_pause{60};

  // A kernel comes in a millisecond or so, from another site in some tens.
  static constexpr std::chrono::milliseconds k_quick{50};

  enum class Operation { read, write };

  enum class Change { none, pause, writes_paused, writes_off, off, budget_spent };

  struct Status {
    Change now = Change::none;  // the most severe of what holds at present
    RedisFailure why;           // of the last failure that led to it
  };

  // `budget`: how much time failed operations may take in all. `pause`: how long after one nothing is tried.
  RemoteGate(Duration budget, Duration pause) : budget_(budget), pause_(pause) {}

  bool admits(Operation operation, TimePoint now) const;
  bool is_off() const;

  // Takes note of an operation that failed after `spent`, and says what has come of it.
  Change note_failure(RedisFailure failure, Duration spent, TimePoint now);

  // Takes note of an answer that came after `spent`: what it took beyond k_quick is trouble as well, for a
  // server that always answers late would otherwise cost a launch any time at all.
  Change note_answer(Duration spent);

  // Ends a pause. For one that was asked by hand; otherwise there are no successes in a pause.
  void note_success();

  Status status(TimePoint now) const;

 private:
  const Duration budget_;
  const Duration pause_;
  mutable ForkMutex mutex_;
  Duration spent_{};
  Change off_ = Change::none;  // or off, or budget_spent
  RedisFailure off_why_;
  RedisFailure pause_why_;
  TimePoint pause_end_{};
  RedisFailure write_why_;
  TimePoint write_pause_end_{};
  bool writes_off_ = false;
};

}  // namespace jitsmith
