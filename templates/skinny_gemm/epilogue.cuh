// The end of every skinny_gemm kernel: a finished sum + bias, then + residual, in fp32, then the one
// rounding.
#pragma once

#include "device/bf16.cuh"
#include "device/math.cuh"
#include "skinny_gemm/args.h"

namespace jitsmith {

template <class Out>
JITSMITH_DEVICE void store_output(const SkinnyGemmArgs& args, int m, int n, float y) {
  if (args.bias_type == SkinnyGemmBias::bf16) y = add_rn(y, to_float(static_cast<const bf16*>(args.bias)[n]));
  if (args.bias_type == SkinnyGemmBias::f32) y = add_rn(y, static_cast<const float*>(args.bias)[n]);
  if (args.residual != nullptr)
    y = add_rn(y, to_float(static_cast<const Out*>(args.residual)[m * args.residual_stride + n]));
  static_cast<Out*>(args.y)[m * args.y_stride + n] = from_float<Out>(y);
}

}  // namespace jitsmith
