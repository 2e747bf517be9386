// bf16 on the host: the bits of templates/device/bf16.cuh, for references and inputs.
#pragma once

#include <bit>
#include <cstdint>

namespace jitsmith {

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// Rounds to nearest, ties to even; every NaN becomes 0x7FFF, as the GPU's conversion does.
inline std::uint16_t bf16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace jitsmith
