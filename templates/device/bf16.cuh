// bf16: the upper half of a float. Conversion to float is exact; from float it rounds to nearest, ties to
// even, overflow goes to Inf, and every NaN becomes 0x7FFF, as the GPU's own instruction does.
#pragma once

#include "device/bits.cuh"

namespace jitsmith {

struct bf16 {
  uint16 bits;
};

JITSMITH_DEVICE float to_float(bf16 value) {
  return float_from_bits(static_cast<uint32>(value.bits) << 16);
}

#if !JITSMITH_HOST

JITSMITH_DEVICE bf16 bf16_from_float(float value) {
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

#else

JITSMITH_DEVICE bf16 bf16_from_float(float value) {
  const uint32 bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  // Half a unit in the last place, less one where the kept half is even: a carry into the exponent is right,
  // up to Inf.
  return {static_cast<uint16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

#endif

// The same for code that is generic in the element type.
JITSMITH_DEVICE float to_float(float value) {
  return value;
}

template <class T>
JITSMITH_DEVICE T from_float(float value) {
  if constexpr (sizeof(T) == sizeof(bf16))
    return bf16_from_float(value);
  else
    return value;
}

}  // namespace jitsmith
