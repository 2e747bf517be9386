// skinny_gemm on the tensor cores: Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N]), bf16 operands,
// fp32 accumulation, one rounding at the end.
//
// W is the operand of 16 rows and X that of 8 columns, so that up to 8 rows of X cost the time of one. A
// cluster of Cluster blocks computes TileM rows of TileN outputs; its warps share K. The order of every sum
// is fixed, so that a row has the same bits whatever M it comes with (KERNELS: Decisions):
//   1. K is cut into spans of 128. Warp w of block r of the cluster owns spans r Warps + w + i Warps Cluster,
//      i = 0, 1, ... Past K there are zeros.
//   2. A span is summed by 8 tensor-core products, in two chains of 4 from +0 that are then added: of each
//      lane's 8 elements of each 32-element part of the span, the lower four and the upper four.
//   3. The spans of a warp are added in fp32, in increasing k, from +0.
//   4. Across the warps of a block: from warp 0 upwards. Across the blocks: from block 0 upwards.
//   5. Then + bias, then + residual, in fp32, then the rounding to Out.
// Only Warps and Cluster enter this order. TileM, TileN, Vector and Programmatic do not change a bit.
//
// Which k a product sees in which place is ours to choose as long as both operands agree: a lane loads 16
// bytes of a row, and these are what it hands to two products.
//
// Launch: grid x = ceil(M / TileM) * ceil(N / TileN) * Cluster, the row tiles of one column tile adjacent so
// that W is read from memory once; block x = 32 * Warps. Vector: K % 8 == 0, X and W and their row strides
// are multiples of 16 bytes.
#include "device/bf16.cuh"
#include "device/cluster.cuh"
#include "device/dependent_launch.cuh"
#include "device/launch.cuh"
#include "device/memory.cuh"
#include "device/mma.cuh"
#include "device/shared.cuh"
#include "skinny_gemm/block.cuh"

namespace jitsmith {

inline constexpr uint32 k_part = 32;  // of K: 8 elements of each of a row's four lanes
inline constexpr uint32 k_line = 2 * k_part;
inline constexpr uint32 k_span = 2 * k_line;

// Of a line of K, 128 bytes of a row, the two parts' elements that this lane has.
struct Line {
  uint4x part[2];
};

JITSMITH_DEVICE uint4x masked(uint4x v, uint32 mask) {
  return {v.x & mask, v.y & mask, v.z & mask, v.w & mask};
}

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

// Row `index` of a matrix of `extent` rows. Past the last row there is that one again; what is computed from
// it is dropped.
JITSMITH_DEVICE const bf16* row_of(const void* matrix, int64 stride, int index, int extent) {
  return computed_once(static_cast<const bf16*>(matrix) + min(index, extent - 1) * stride);
}

// How a warp reads 8 rows of X. A load of 64 bytes of each row would ask the L2 cache for half lines, and X
// comes from there for every block anew: two lines of whole rows, of each pair of rows, and then the two
// quads of lanes of the pair trade halves.
struct XRows {
  const bf16 *even, *odd;
};

JITSMITH_DEVICE uint4x select(bool condition, uint4x a, uint4x b) {
  return {select(condition, a.x, b.x), select(condition, a.y, b.y), select(condition, a.z, b.z),
          select(condition, a.w, b.w)};
}

JITSMITH_DEVICE Line load_x_line(const XRows& rows, uint32 line, uint32 k) {
  // The quad of the even row reads the lower half of its own row and the upper half of the odd one; the other
  // quad reads what completes both lines.
  const uint32 place = lane_index() % 4 * 8;
  const bool odd = lane_index() / 4 % 2 != 0;
  const uint32 low = min(line + place, k - 8), high = min(line + k_part + place, k - 8);
  return {{load16(rows.even + (odd ? high : low)), load16(rows.odd + (odd ? low : high))}};
}

JITSMITH_DEVICE Line traded(const Line& loaded) {
  const bool odd = lane_index() / 4 % 2 != 0;
  const uint4x kept = select(odd, loaded.part[1], loaded.part[0]),
               sent = select(odd, loaded.part[0], loaded.part[1]);
  return {{kept,
           {shuffle_xor(sent.x, 4), shuffle_xor(sent.y, 4), shuffle_xor(sent.z, 4), shuffle_xor(sent.w, 4)}}};
}

template <int Warps, int Cluster, int TileM, int TileN, bool Vector, bool Programmatic, class Out>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(Warps * 32) skinny_gemm_mma(SkinnyGemmArgs args) {
  constexpr int k_x_tiles = TileM / 8, k_w_tiles = TileN / 16;
  constexpr int k_pitch = TileN + 4;  // lanes that store at once meet in no bank
  constexpr int k_outputs = TileM * TileN, k_owned = k_outputs / Cluster;  // of the cluster, of a block
  struct Shared {
    float partial[Warps][TileM * k_pitch];
    float gathered[Cluster][k_owned];
  };
  Shared& shared = block_shared<Shared>();

  if constexpr (Programmatic) launch_dependents();
  uint32 rank = 0;
  if constexpr (Cluster > 1) {
    rank = cluster_rank();
    cluster_arrive();
  }
  const FirstOutput tile = first_output<TileM, TileN, Cluster>(args);
  const uint32 warp = warp_index(), lane = lane_index(), k = static_cast<uint32>(args.k);
  const int row = static_cast<int>(lane / 4), place = static_cast<int>(lane % 4);

  const bf16* w_rows[2 * k_w_tiles];
  XRows x_rows[k_x_tiles];
#pragma unroll
  for (int i = 0; i < 2 * k_w_tiles; ++i)
    w_rows[i] = row_of(args.w, args.w_stride, tile.n + row + 8 * i, args.n);
#pragma unroll
  for (int j = 0; j < k_x_tiles; ++j) {
    const int first = tile.m + 8 * j + (Vector ? row & ~1 : row);
    x_rows[j].even = row_of(args.x, args.x_stride, first, args.m);
    if constexpr (Vector) x_rows[j].odd = row_of(args.x, args.x_stride, first + 1, args.m);
  }

  constexpr uint32 k_step = Warps * Cluster * k_span;
  // Loaded at once: a span, or of many rows half of one, which registers hold.
  constexpr uint32 k_lines = TileM > 16 ? 1 : 2, k_group = k_lines * k_line;
  const uint32 first_span = (rank * Warps + warp) * k_span;
  Line w[k_lines][2 * k_w_tiles], x[k_lines][k_x_tiles];  // all in flight before the first is used
  const auto load_w = [&](uint32 group) {
#pragma unroll
    for (uint32 line = 0; line < k_lines; ++line)
#pragma unroll
      for (uint32 p = 0; p < 2; ++p)
#pragma unroll
        for (int i = 0; i < 2 * k_w_tiles; ++i)
          w[line][i].part[p] = load16_streaming_line(
              w_rows[i] + min(group + line * k_line + p * k_part + static_cast<uint32>(place) * 8, k - 8));
  };
  const auto load_x = [&](uint32 group) {
#pragma unroll
    for (uint32 line = 0; line < k_lines; ++line)
#pragma unroll
      for (int j = 0; j < k_x_tiles; ++j) x[line][j] = load_x_line(x_rows[j], group + line * k_line, k);
  };
  // X comes from the L2 cache and would queue behind W: the barrier keeps the compiler from loading W first.
  const auto load_x_then_w = [&](uint32 group) {
    load_x(group);
    sync_warp();
    load_w(group);
  };
  if constexpr (Programmatic) {
    // Weights are asked for before the kernel in front has ended, activations after: the first group's into
    // registers, the others' into the L2 cache.
#pragma unroll 1
    for (uint32 span = first_span + (k_group < k_span ? 0 : k_step); span < k; span += k_step)
#pragma unroll
      for (int i = 0; i < k_w_tiles; ++i)
        prefetch_line(row_of(args.w, args.w_stride, tile.n + 16 * i + static_cast<int>(lane / 2), args.n) +
                      min(span + lane % 2 * k_line, k - 1));
    if (Vector && first_span < k) load_w(first_span);
    wait_for_dependency();
    if (Vector && first_span < k) load_x(first_span);
  } else if (Vector && first_span < k) {
    load_x_then_w(first_span);
  }

  float sums[k_w_tiles][k_x_tiles][4] = {};
#pragma unroll 1
  for (uint32 span = first_span; span < k; span += k_step) {
    // Two chains, of the lower and of the upper four elements: half the latency of one.
    float lower[k_w_tiles][k_x_tiles][4] = {}, upper[k_w_tiles][k_x_tiles][4] = {};
    const auto add_products = [&](int i, int j, uint4x top, uint4x bottom, uint4x xs) {
      mma_16x8x16(lower[i][j], {top.x, bottom.x, top.y, bottom.y}, {xs.x, xs.y});
      mma_16x8x16(upper[i][j], {top.z, bottom.z, top.w, bottom.w}, {xs.z, xs.w});
    };
    if constexpr (Vector) {
#pragma unroll 1
      for (uint32 group = span; group < span + k_span; group += k_group) {
#pragma unroll
        for (uint32 line = 0; line < k_lines; ++line) {
#pragma unroll
          for (int j = 0; j < k_x_tiles; ++j) x[line][j] = traded(x[line][j]);
#pragma unroll
          for (uint32 p = 0; p < 2; ++p) {
            const uint32 first = group + line * k_line + p * k_part + static_cast<uint32>(place) * 8;
            const uint32 mask = first < k ? 0xffffffffu : 0u;
#pragma unroll
            for (int i = 0; i < k_w_tiles; ++i)
#pragma unroll
              for (int j = 0; j < k_x_tiles; ++j)
                add_products(i, j, masked(w[line][2 * i].part[p], mask),
                             masked(w[line][2 * i + 1].part[p], mask), masked(x[line][j].part[p], mask));
          }
        }
        const uint32 next = group + k_group < span + k_span ? group + k_group : span + k_step;
        if (next < k) load_x_then_w(next);
      }
    } else {
#pragma unroll 1
      for (uint32 p = 0; p < k_span / k_part; ++p) {
        const uint32 first = span + p * k_part + static_cast<uint32>(place) * 8;
        uint4x rows[2 * k_w_tiles];
#pragma unroll
        for (int i = 0; i < 2 * k_w_tiles; ++i) rows[i] = load_elements(w_rows[i], first, k);
#pragma unroll
        for (int j = 0; j < k_x_tiles; ++j) {
          const uint4x xs = load_elements(x_rows[j].even, first, k);
#pragma unroll
          for (int i = 0; i < k_w_tiles; ++i) add_products(i, j, rows[2 * i], rows[2 * i + 1], xs);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < k_w_tiles; ++i)
#pragma unroll
      for (int j = 0; j < k_x_tiles; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          sums[i][j][c] = add_rn(sums[i][j][c], add_rn(lower[i][j][c], upper[i][j][c]));
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
  if constexpr (Cluster > 1) cluster_wait();

#pragma unroll 1
  for (int output = static_cast<int>(thread_index_x()); output < k_outputs; output += Warps * 32) {
    const int m = output / TileN, n = output % TileN;
    if (tile.m + m >= args.m || tile.n + n >= args.n) continue;
    float y = shared.partial[0][m * k_pitch + n];
#pragma unroll
    for (int from = 1; from < Warps; ++from) y = add_rn(y, shared.partial[from][m * k_pitch + n]);
    if constexpr (Cluster == 1)
      store_output<Out>(args, tile.m + m, tile.n + n, y);
    else
      map_shared_rank(&shared, static_cast<uint32>(output % Cluster))->gathered[rank][output / Cluster] = y;
  }
  if constexpr (Cluster > 1) {
    cluster_arrive();
    cluster_wait();
#pragma unroll 1
    for (int i = static_cast<int>(thread_index_x()); i < k_owned; i += Warps * 32) {
      const int output = i * Cluster + static_cast<int>(rank), m = output / TileN, n = output % TileN;
      if (tile.m + m >= args.m || tile.n + n >= args.n) continue;
      float y = shared.gathered[0][i];
#pragma unroll
      for (int from = 1; from < Cluster; ++from) y = add_rn(y, shared.gathered[from][i]);
      store_output<Out>(args, tile.m + m, tile.n + n, y);
    }
  }
}

}  // namespace jitsmith
