// Loads and stores. The 16-byte forms need a 16-byte aligned address; the host target checks that.
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

struct alignas(16) uint4x {
  uint32 x, y, z, w;
};

// One element, any memory.
template <class T>
JITSMITH_DEVICE T load(const T* address) {
  return *address;
}
template <class T>
JITSMITH_DEVICE void store(T* address, T value) {
  *address = value;
}

#if !JITSMITH_HOST

// The same address, of which the compiler does not know how it was computed. It would otherwise compute row *
// stride anew for every load in a loop to save a register.
template <class T>
JITSMITH_DEVICE const T* computed_once(const T* address) {
  asm("" : "+l"(address));
  return address;
}

// Volatile, these loads stay in the order in which they are written, among themselves and around a wait for
// another kernel: many in flight before the first is used is what a kernel that streams memory lives on.

// Global memory that no thread of this kernel writes, such as activations.
JITSMITH_DEVICE uint4x load16(const void* address) {
  uint4x v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(address)));
  return v;
}

// Global memory that nothing writes while the kernel runs and that is read once, such as weights: through the
// read-only path, leaving the L1 cache to others.
JITSMITH_DEVICE uint4x load16_streaming(const void* address) {
  uint4x v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(address)));
  return v;
}

// The same where a warp loads only a part of each line of 128 bytes at once: memory is read by whole lines.
// Not through the read-only path, whose loads the compiler moves across a warp barrier.
JITSMITH_DEVICE uint4x load16_streaming_line(const void* address) {
  uint4x v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(address)));
  return v;
}

// Asks for the line of 128 bytes at `address`, in global memory, to be brought into the L2 cache.
JITSMITH_DEVICE void prefetch_line(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

// Shared memory.
JITSMITH_DEVICE uint4x load16_shared(const void* address) {
  return *static_cast<const uint4x*>(address);
}

// Any memory.
JITSMITH_DEVICE void store16(void* address, uint4x value) {
  *static_cast<uint4x*>(address) = value;
}

#else

template <class T>
JITSMITH_DEVICE const T* computed_once(const T* address) {
  return address;
}

namespace host {
JITSMITH_DEVICE uint4x load16_checked(const void* address, Site site) {
  check_aligned_16(address, site);
  uint4x value;
  __builtin_memcpy(&value, address, sizeof value);
  return value;
}
}  // namespace host

JITSMITH_DEVICE uint4x load16(const void* address, host::Site site = host::here()) {
  return host::load16_checked(address, site);
}
JITSMITH_DEVICE uint4x load16_streaming(const void* address, host::Site site = host::here()) {
  return host::load16_checked(address, site);
}
JITSMITH_DEVICE uint4x load16_streaming_line(const void* address, host::Site site = host::here()) {
  return host::load16_checked(address, site);
}
JITSMITH_DEVICE void prefetch_line(const void*) {}
JITSMITH_DEVICE uint4x load16_shared(const void* address, host::Site site = host::here()) {
  return host::load16_checked(address, site);
}
JITSMITH_DEVICE void store16(void* address, uint4x value, host::Site site = host::here()) {
  host::check_aligned_16(address, site);
  __builtin_memcpy(address, &value, sizeof value);
}

#endif

}  // namespace jitsmith
