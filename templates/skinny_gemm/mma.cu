// skinny_gemm on the tensor cores: Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N]), bf16 operands,
// fp32 accumulation, one rounding at the end.
//
// W is the operand of 16 rows and X that of 8 columns, so that up to 8 rows of X cost the time of one. A
// block computes TileM rows of TileN outputs; its warps share K. The order of every sum is fixed, so that a
// row has the same bits whatever M it comes with (KERNELS: Decisions):
//   1. K is cut into spans of 128. Warp w owns spans w, w + Warps, w + 2 Warps, ... Past K there are zeros.
//   2. A span is summed by 8 tensor-core products from +0, one after the other. Product p takes, of each
//   lane's 8
//      elements of the span's 32-element part p / 2, the lower or the upper four.
//   3. The spans of a warp are added in fp32, in increasing k, from +0.
//   4. Across warps: from warp 0 upwards.
//   5. Then + bias, then + residual, in fp32, then the rounding to Out.
// Only Warps enters this order. TileM, TileN and Vector do not change a bit.
//
// Which k a product sees in which place is ours to choose as long as both operands agree: a lane loads 16
// bytes of a row, and these are what it hands to two products.
//
// Launch: grid x = ceil(M / TileM) * ceil(N / TileN), the row tiles of one column tile adjacent so that W is
// read from memory once; block x = 32 * Warps. Vector: K % 8 == 0, X and W and their row strides are
// multiples of 16 bytes.
#include "device/bf16.cuh"
#include "device/launch.cuh"
#include "device/memory.cuh"
#include "device/mma.cuh"
#include "device/shared.cuh"
#include "skinny_gemm/block.cuh"

namespace jitsmith {

inline constexpr uint32 k_part = 32;  // of K: 8 elements of each of a row's four lanes
inline constexpr uint32 k_parts = 4;
inline constexpr uint32 k_span = k_part * k_parts;

// Of a part of K: the 8 elements that this lane loads of each of its rows of W and of X.
template <int WRows, int XRows>
struct Part {
  uint4x w[WRows], x[XRows];
};

// The 8 elements of a row from `first` on, an element a load; zeros from K on.
JITSMITH_DEVICE uint4x load_elements(const bf16* row, uint32 first, uint32 k) {
  uint64 low = 0, high = 0;
#pragma unroll 1
  for (uint32 e = first + 8; e-- > first;) {
    high = high << 16 | low >> 48;
    low = low << 16 | (e < k ? load(row + e).bits : 0u);
  }
  return {static_cast<uint32>(low), static_cast<uint32>(low >> 32), static_cast<uint32>(high),
          static_cast<uint32>(high >> 32)};
}

JITSMITH_DEVICE uint4x masked(uint4x v, uint32 mask) {
  return {v.x & mask, v.y & mask, v.z & mask, v.w & mask};
}

// Past K elements inside are loaded and replaced by zeros: a load behind a branch would wait for those
// before.
template <bool Vector, int WRows, int XRows>
JITSMITH_DEVICE void load_part(const bf16* const (&w_rows)[WRows], const bf16* const (&x_rows)[XRows],
                               uint32 first, uint32 k, Part<WRows, XRows>& part) {
  if constexpr (Vector) {
    const uint32 inside = min(first, k - 8), mask = first < k ? 0xffffffffu : 0u;
#pragma unroll
    for (int i = 0; i < WRows; ++i) part.w[i] = masked(load16_streaming(w_rows[i] + inside), mask);
#pragma unroll
    for (int j = 0; j < XRows; ++j) part.x[j] = masked(load16(x_rows[j] + inside), mask);
  } else {
#pragma unroll
    for (int i = 0; i < WRows; ++i) part.w[i] = load_elements(w_rows[i], first, k);
#pragma unroll
    for (int j = 0; j < XRows; ++j) part.x[j] = load_elements(x_rows[j], first, k);
  }
}

// Two products of each pair of tiles: the lower four of a lane's elements of each row, then the upper four.
template <int WRows, int XRows>
JITSMITH_DEVICE void add_products(const Part<WRows, XRows>& part, float (&products)[WRows / 2][XRows][4]) {
#pragma unroll
  for (int i = 0; i < WRows / 2; ++i)
#pragma unroll
    for (int j = 0; j < XRows; ++j) {
      const uint4x &upper = part.w[2 * i], &lower = part.w[2 * i + 1], &x = part.x[j];
      mma_16x8x16(products[i][j], {upper.x, lower.x, upper.y, lower.y}, {x.x, x.y});
      mma_16x8x16(products[i][j], {upper.z, lower.z, upper.w, lower.w}, {x.z, x.w});
    }
}

// Row `index` of a matrix of `extent` rows. Past the last row there is that one again; what is computed from
// it is dropped.
JITSMITH_DEVICE const bf16* row_of(const void* matrix, int64 stride, int index, int extent) {
  return computed_once(static_cast<const bf16*>(matrix) + min(index, extent - 1) * stride);
}

template <int Warps, int TileM, int TileN, bool Vector, class Out>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(Warps * 32) skinny_gemm_mma(SkinnyGemmArgs args) {
  constexpr int k_x_tiles = TileM / 8, k_w_tiles = TileN / 16;
  constexpr int k_pitch = TileN + 4;  // lanes that store at once meet in no bank
  struct Shared {
    float partial[Warps][TileM * k_pitch];
  };
  Shared& shared = block_shared<Shared>();

  const auto [m_first, n_first] = first_output<TileM, TileN>(args);
  const uint32 warp = warp_index(), lane = lane_index(), k = static_cast<uint32>(args.k);
  const int row = static_cast<int>(lane / 4), place = static_cast<int>(lane % 4);

  const bf16* w_rows[2 * k_w_tiles];
  const bf16* x_rows[k_x_tiles];
#pragma unroll
  for (int i = 0; i < 2 * k_w_tiles; ++i)
    w_rows[i] = row_of(args.w, args.w_stride, n_first + row + 8 * i, args.n);
#pragma unroll
  for (int j = 0; j < k_x_tiles; ++j)
    x_rows[j] = row_of(args.x, args.x_stride, m_first + row + 8 * j, args.m);

  float sums[k_w_tiles][k_x_tiles][4] = {};
#pragma unroll 1
  for (uint32 span = warp * k_span; span < k; span += Warps * k_span) {
    const uint32 first = span + static_cast<uint32>(place) * 8;
    float products[k_w_tiles][k_x_tiles][4] = {};
    if constexpr (Vector) {
      Part<2 * k_w_tiles, k_x_tiles> parts[k_parts];  // all in flight before the first is used
#pragma unroll
      for (uint32 p = 0; p < k_parts; ++p) load_part<true>(w_rows, x_rows, first + p * k_part, k, parts[p]);
#pragma unroll
      for (uint32 p = 0; p < k_parts; ++p) add_products(parts[p], products);
    } else {
#pragma unroll 1
      for (uint32 p = 0; p < k_parts; ++p) {
        Part<2 * k_w_tiles, k_x_tiles> part;
        load_part<false>(w_rows, x_rows, first + p * k_part, k, part);
        add_products(part, products);
      }
    }
#pragma unroll
    for (int i = 0; i < k_w_tiles; ++i)
#pragma unroll
      for (int j = 0; j < k_x_tiles; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[i][j][c] = add_rn(sums[i][j][c], products[i][j][c]);
  }

#pragma unroll
  for (int i = 0; i < k_w_tiles; ++i)
#pragma unroll
    for (int j = 0; j < k_x_tiles; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int n = row + 16 * i + 8 * (c / 2), m = 2 * place + 8 * j + c % 2;
        shared.partial[warp][m * k_pitch + n] = sums[i][j][c];
      }
  sync_block();

#pragma unroll 1
  for (int output = static_cast<int>(thread_index_x()); output < TileM * TileN; output += Warps * 32) {
    const int m = output / TileN, n = output % TileN;
    if (m_first + m >= args.m || n_first + n >= args.n) continue;
    float y = shared.partial[0][m * k_pitch + n];
#pragma unroll
    for (int from = 1; from < Warps; ++from) y = add_rn(y, shared.partial[from][m * k_pitch + n]);
    store_output<Out>(args, m_first + m, n_first + n, y);
  }
}

}  // namespace jitsmith
