// float arithmetic, rounded to nearest even and never contracted. A NaN result is 0x7FFFFFFF, as on the GPU.
#pragma once

#include "device/bits.cuh"

namespace jitsmith {

#if !JITSMITH_HOST

// condition ? a : b, always without a branch. The compiler makes a branch of ?: and duplicates what follows
// into both sides where that saves a move: around a warp shuffle that costs hundreds of cycles.
JITSMITH_DEVICE float select(bool condition, float a, float b) {
  float result;
  asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tselp.f32 %0, %1, %2, p;\n\t}"
      : "=f"(result)
      : "f"(a), "f"(b), "r"(static_cast<uint32>(condition)));
  return result;
}

JITSMITH_DEVICE uint32 select(bool condition, uint32 a, uint32 b) {
  uint32 result;
  asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tselp.b32 %0, %1, %2, p;\n\t}"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(static_cast<uint32>(condition)));
  return result;
}

JITSMITH_DEVICE float fma_rn(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
JITSMITH_DEVICE float add_rn(float a, float b) {
  return __fadd_rn(a, b);
}
JITSMITH_DEVICE float mul_rn(float a, float b) {
  return __fmul_rn(a, b);
}
JITSMITH_DEVICE float div_rn(float a, float b) {
  return __fdiv_rn(a, b);
}

#else

namespace host {
// x86 and Arm keep the payload of a NaN operand; the GPU does not.
JITSMITH_DEVICE float canonical(float value) {
  return value == value ? value : float_from_bits(0x7fffffffu);
}
}  // namespace host

JITSMITH_DEVICE float select(bool condition, float a, float b) {
  return condition ? a : b;
}
JITSMITH_DEVICE uint32 select(bool condition, uint32 a, uint32 b) {
  return condition ? a : b;
}

JITSMITH_DEVICE float fma_rn(float a, float b, float c) {
  return host::canonical(__builtin_fmaf(a, b, c));
}
JITSMITH_DEVICE float add_rn(float a, float b) {
  return host::canonical(a + b);
}
JITSMITH_DEVICE float mul_rn(float a, float b) {
  return host::canonical(a * b);
}
JITSMITH_DEVICE float div_rn(float a, float b) {
  return host::canonical(a / b);
}

#endif

}  // namespace jitsmith
