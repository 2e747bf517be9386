// What skinny_gemm must compute, twice over: in fp64 with a tolerance, for any variant; and the exact bits of
// the SIMT variant's order of summation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <jitsmith/runtime/arrays.hpp>

namespace jitsmith {

// Operands as arrays: x [M,K] and w [N,K] bf16, bias [N] bf16 or f32 or none, residual [M,N] of the type of y
// or none.
struct SkinnyGemmOperands {
  const Array& x;
  const Array& w;
  const Array* bias = nullptr;
  const Array* residual = nullptr;
};

// Compares y [M,N] element by element with r, the fp64 result. With a = sum_k |x_k w_k| + |bias| +
// |residual|:
//   f32    |y - r| <= 2^-20 a
//   bf16   y is bf16_rn(r) or one of its neighbours, or |y - r| <= 2^-20 a + half a unit in the last place of
//   r
// A result that is not finite must be what fp64 gives: NaN for NaN, the same infinity for an infinity; where
// r overflows fp32 or comes within the tolerance of it, the infinity of its sign is right too.
CheckResult check_skinny_gemm(const SkinnyGemmOperands& operands, const Array& y);

// Y to the bit as the SIMT variant with this many threads a block computes it (templates/skinny_gemm/simt.cu,
// 1 to 5).
Array skinny_gemm_simt_model(const SkinnyGemmOperands& operands, std::int64_t threads, ElementType out);

}  // namespace jitsmith
