#include <jitsmith/cache/remote_gate.hpp>

namespace jitsmith {

bool RemoteGate::admits(Operation operation, TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (off_ != Change::none || now < pause_end_) return false;
  return operation == Operation::read || (!writes_off_ && now >= write_pause_end_);
}

bool RemoteGate::is_off() const {
  const std::scoped_lock lock(mutex_);
  return off_ != Change::none;
}

RemoteGate::Change RemoteGate::note_failure(RedisFailure failure, Duration spent, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  if (off_ != Change::none) return Change::none;
  switch (consequence_of(failure.fault)) {
    case Consequence::damaged_value:
      return Change::none;
    case Consequence::pause_writes:
      write_why_ = failure;
      write_pause_end_ = now + k_write_pause;
      return Change::writes_paused;
    case Consequence::stop_writes:
      write_why_ = failure;
      writes_off_ = true;
      return Change::writes_off;
    case Consequence::stop:
      off_why_ = failure;
      return off_ = Change::off;
    case Consequence::wait:
      break;
  }
  spent_ += spent;
  if (spent_ >= budget_) {
    off_why_ = failure;
    return off_ = Change::budget_spent;
  }
  pause_why_ = failure;
  pause_end_ = now + pause_;
  return Change::pause;
}

RemoteGate::Change RemoteGate::note_answer(Duration spent) {
  if (spent <= k_quick) return Change::none;
  const std::scoped_lock lock(mutex_);
  if (off_ != Change::none) return Change::none;
  spent_ += spent - k_quick;
  if (spent_ < budget_) return Change::none;
  off_why_ = {RedisFault::too_slow, 0};
  return off_ = Change::budget_spent;
}

void RemoteGate::note_success() {
  const std::scoped_lock lock(mutex_);
  pause_end_ = {};
}

RemoteGate::Status RemoteGate::status(TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (off_ != Change::none) return {off_, off_why_};
  if (now < pause_end_) return {Change::pause, pause_why_};
  if (writes_off_) return {Change::writes_off, write_why_};
  if (now < write_pause_end_) return {Change::writes_paused, write_why_};
  return {};
}

}  // namespace jitsmith
