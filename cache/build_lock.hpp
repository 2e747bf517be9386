// A lock on one key, so that of many processes which miss the same entry one compiles and the others wait.
//
// It only saves work: wrong or missing locks cost a second compile of the same bytes, nothing else. The
// kernel releases it when its holder closes it or dies, and waiting is bounded, so that neither a killed nor
// a stopped holder can hold up anybody for long. It is a byte range lock on the file `v1/locks`, one byte a
// key; the file stays empty.
#pragma once

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/digest.hpp>

#include <cstdint>

namespace jitsmith {

// Every offset below 2^62 belongs to keys, this one to who trims. Two keys on one byte wait for each other,
// and no worse.
inline constexpr std::uint64_t k_trim_lock_byte = std::uint64_t{1} << 62;

constexpr std::uint64_t build_lock_byte(const Digest& digest) {
  return digest.low & (k_trim_lock_byte - 1);
}

enum class LockOutcome {
  held,         // by us
  timed_out,    // by another one, longer than we wait
  stored,       // by another one, but meanwhile the entry is there
  unavailable,  // no directory, no locks in its file system, or nothing could be stored there anyway
};

// Released when destroyed; a child that was forked meanwhile has a copy, and can keep it for longer.
struct BuildLock {
  LockOutcome outcome = LockOutcome::unavailable;
  Descriptor file;
};

}  // namespace jitsmith
