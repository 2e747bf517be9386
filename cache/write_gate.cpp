#include <jitsmith/cache/write_gate.hpp>

#include <cerrno>

namespace jitsmith {

std::optional<WriteGate::Closed> WriteGate::closed(TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (!cause_.for_good && now >= reopens_at_) return std::nullopt;
  return cause_;
}

bool WriteGate::note_failure(int error, TimePoint now) {
  const bool for_good = error == EROFS || error == EACCES || error == EPERM;
  const bool for_a_while = error == ENOSPC || error == EDQUOT;
  if (!for_good && !for_a_while) return false;

  const std::scoped_lock lock(mutex_);
  if (cause_.for_good) return false;
  const bool was_open = now >= reopens_at_;
  cause_ = {error, for_good};
  reopens_at_ = now + k_full_disk_pause;
  return was_open || for_good;
}

}  // namespace jitsmith
