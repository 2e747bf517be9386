#include <jitsmith/cache/write_gate.hpp>

#include <cerrno>

namespace jitsmith {

bool is_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT;
}

std::optional<WriteGate::Closed> WriteGate::closed(TimePoint now) const {
  return state_.with([&](const State& state) -> std::optional<Closed> {
    if (!state.cause.for_good && now >= state.reopens_at) return std::nullopt;
    return state.cause;
  });
}

bool WriteGate::note_failure(int error, TimePoint now) {
  const bool for_good = error == EROFS || error == EACCES || error == EPERM;
  if (!for_good && !is_full_disk(error)) return false;

  return state_.with([&](State& state) {
    if (state.cause.for_good) return false;
    const bool was_open = now >= state.reopens_at;
    state = {{error, for_good}, now + k_full_disk_pause};
    return was_open || for_good;
  });
}

}  // namespace jitsmith
