// What every skinny_gemm kernel does alike: finding the outputs of its block, and storing a finished sum.
#pragma once

#include "device/bf16.cuh"
#include "device/launch.cuh"
#include "device/math.cuh"
#include "skinny_gemm/args.h"

namespace jitsmith {

struct FirstOutput {
  int m, n;
};

// Of the tile that a block computes, or a cluster of blocks. The row tiles of one column tile are adjacent,
// so that W is read from memory once.
template <int TileM, int TileN, int Cluster = 1>
JITSMITH_DEVICE FirstOutput first_output(const SkinnyGemmArgs& args) {
  const int m_tiles = ceil_div(args.m, TileM);
  const int tile = static_cast<int>(block_index_x()) / Cluster;
  const int n_tile = m_tiles == 1 ? tile : tile / m_tiles;
  return {(tile - n_tile * m_tiles) * TileM, n_tile * TileN};
}

// The sum + bias, then + residual, in fp32, then the one rounding.
template <class Out>
JITSMITH_DEVICE void store_output(const SkinnyGemmArgs& args, int m, int n, float y) {
  if (args.bias_type == SkinnyGemmBias::bf16) y = add_rn(y, to_float(static_cast<const bf16*>(args.bias)[n]));
  if (args.bias_type == SkinnyGemmBias::f32) y = add_rn(y, static_cast<const float*>(args.bias)[n]);
  if (args.residual != nullptr)
    y = add_rn(y, to_float(static_cast<const Out*>(args.residual)[m * args.residual_stride + n]));
  static_cast<Out*>(args.y)[m * args.y_stride + n] = from_float<Out>(y);
}

}  // namespace jitsmith
