// What every template includes first: which compiler reads it, fixed-width integers, function qualifiers.
//
// A template is read by NVRTC, which has no header of CUDA or the standard library here, and by the system
// C++ compiler for the host target. It calls no PTX, builtin or intrinsic itself, only the functions of these
// device headers: each exists for both and gives the same bits on both.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define JITSMITH_HOST 0
#define JITSMITH_DEVICE __device__ __forceinline__
#define JITSMITH_KERNEL __global__
// "At least one block a multiprocessor" lets the assembler use the registers that it needs. Without the 1 it
// aims for high occupancy, and to save registers moves loads that were written ahead of their use down to it,
// so that each waits for the one before.
#define JITSMITH_LAUNCH_BOUNDS(max_threads) __launch_bounds__(max_threads, 1)
#else
#define JITSMITH_HOST 1
#define JITSMITH_DEVICE inline __attribute__((always_inline))
#define JITSMITH_KERNEL
#define JITSMITH_LAUNCH_BOUNDS(max_threads)
#include "device/host.cuh"
#endif

namespace jitsmith {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;

static_assert(sizeof(int8) == 1 && sizeof(int16) == 2 && sizeof(int32) == 4 && sizeof(int64) == 8);
static_assert(sizeof(uint8) == 1 && sizeof(uint16) == 2 && sizeof(uint32) == 4 && sizeof(uint64) == 8);
static_assert(sizeof(float) == 4 && sizeof(double) == 8 && sizeof(void*) == 8);

// Rounded up, for non-negative integers.
template <class T>
JITSMITH_DEVICE constexpr T ceil_div(T dividend, T divisor) {
  return (dividend + divisor - 1) / divisor;
}

template <class T>
JITSMITH_DEVICE constexpr T min(T a, T b) {
  return b < a ? b : a;
}

template <class T>
JITSMITH_DEVICE constexpr T max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace jitsmith
