// The one parameter of every skinny_gemm kernel, for the host and the device side alike.
//
//   Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N])
//
// Strides count elements between rows; the elements of a row are adjacent. X and W are bf16, Y and residual
// have the type that the kernel was instantiated for.
#pragma once

namespace jitsmith {

enum class SkinnyGemmBias : int { none, bf16, f32 };

struct SkinnyGemmArgs {
  const void* x;
  const void* w;
  const void* bias;      // null for none
  const void* residual;  // null for none; may be y itself
  void* y;
  long long x_stride, w_stride, residual_stride, y_stride;
  int m, n, k;
  SkinnyGemmBias bias_type;
};

}  // namespace jitsmith
