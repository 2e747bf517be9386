// The tensor cores' warp-wide matrix product: D[16,8] = A[16,16] * B[16,8] + C[16,8], bf16 operands, fp32
// sums.
//
// Every lane of the warp calls it. Lane l, with row g = l / 4 and place t = l % 4 (PTX: mma.m16n8k16), holds
//   a[0] = A[g][2t, 2t+1]   a[1] = A[g+8][2t, 2t+1]   a[2] = A[g][2t+8, 2t+9]   a[3] = A[g+8][2t+8, 2t+9]
//   b[0] = B[2t, 2t+1][g]   b[1] = B[2t+8, 2t+9][g]                              (the lower k in the lower
//   half) c[0, 1] = C[g][2t, 2t+1]   c[2, 3] = C[g+8][2t, 2t+1]
//
// The hardware's inner summation is neither a chain of fused multiply-adds nor an exact sum, and differs
// between architectures. The host target sums in double and rounds once, so both give the same bits where
// every partial sum is an integer up to 2^24, and else agree within the rounding of a few additions.
#pragma once

#include "device/math.cuh"
#include "device/warp.cuh"

namespace jitsmith {

#if !JITSMITH_HOST

// Needs sm_80, as all that jitsmith compiles for.
JITSMITH_DEVICE void mma_16x8x16(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, "
      "%1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

namespace host {

JITSMITH_DEVICE uint64 join(uint32 low, uint32 high) {
  return static_cast<uint64>(high) << 32 | low;
}

// The products of a row of A and a column of B, of which four lanes hold four elements each. A product is
// exact: it has 16 significant bits.
inline double sum_of_products(const Lanes<uint64>& a, uint32 row, const Lanes<uint64>& b, uint32 column) {
  double sum = 0;
  for (uint32 t = 0; t < 4; ++t)
    for (uint32 bit = 0; bit < 64; bit += 16) {
      const auto element = [bit](uint64 lane) {
        return static_cast<double>(float_from_bits(static_cast<uint32>(lane >> bit & 0xffff) << 16));
      };
      sum += element(a[4 * row + t]) * element(b[4 * column + t]);
    }
  return sum;
}

}  // namespace host

JITSMITH_DEVICE void mma_16x8x16(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2],
                                 host::Site site = host::here()) {
  const host::Lanes<uint64> upper(host::join(a[0], a[2]), k_all_lanes, site);
  const host::Lanes<uint64> lower(host::join(a[1], a[3]), k_all_lanes, site);
  const host::Lanes<uint64> columns(host::join(b[0], b[1]), k_all_lanes, site);
  const uint32 g = host::current()->lane / 4, t = host::current()->lane % 4;
  for (uint32 i = 0; i < 4; ++i) {
    const double sum = host::sum_of_products(i < 2 ? upper : lower, g, columns, 2 * t + i % 2);
    c[i] = host::canonical(static_cast<float>(static_cast<double>(c[i]) + sum));
  }
}

#endif

}  // namespace jitsmith
