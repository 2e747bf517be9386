// Shared memory of a block: one static region, one dynamic region, both uninitialised (the host target fills
// them with NaN bytes).
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

#if !JITSMITH_HOST

// The block's static shared storage, at most 48 KiB. S is a trivial type, and the same one throughout a
// kernel.
template <class S>
JITSMITH_DEVICE S& block_shared() {
  __shared__ S storage;
  return storage;
}

// The block's dynamic shared storage; the launch gives its size. Aligned to 128 bytes.
template <class T>
JITSMITH_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char jitsmith_dynamic_shared[];
  return reinterpret_cast<T*>(jitsmith_dynamic_shared);
}

#else

template <class S>
JITSMITH_DEVICE S& block_shared() {
  static_assert(__is_trivial(S), "shared storage is not initialised: its type must be trivial");
  static_assert(sizeof(S) <= 48 * 1024, "static shared storage is at most 48 KiB: use dynamic_shared");
  return *static_cast<S*>(host::api->static_shared(host::current(), sizeof(S), alignof(S)));
}

template <class T>
JITSMITH_DEVICE T* dynamic_shared() {
  return static_cast<T*>(host::api->dynamic_shared(host::current()));
}

#endif

}  // namespace jitsmith
