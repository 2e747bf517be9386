// Reinterpretation of a value's bits.
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

template <class To, class From>
JITSMITH_DEVICE To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

JITSMITH_DEVICE uint32 bits_of(float value) {
  return bit_cast<uint32>(value);
}
JITSMITH_DEVICE float float_from_bits(uint32 bits) {
  return bit_cast<float>(bits);
}

}  // namespace jitsmith
