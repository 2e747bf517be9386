// skinny_gemm on the plain floating-point units: Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N]),
// bf16 operands, fp32 accumulation, one rounding at the end.
//
// A block computes TileM rows of TileN outputs; its threads share K. The order of every sum is fixed, so that
// a row has the same bits whatever M it comes with (KERNELS: reduction order):
//   1. K is cut into chunks of 8 elements. Thread t owns chunks t, t + Threads, t + 2 Threads, ...
//   2. One fp32 accumulator per output, from +0, updated by fmaf over the elements of the owned chunks in
//   increasing k.
//   3. Within a warp: a butterfly over lane distances 16, 8, 4, 2, 1.
//   4. Across warps: from warp 0 upwards.
//   5. Then + bias, then + residual, in fp32, then the rounding to Out.
// Only Threads enters this order. TileM, TileN, Unroll, Vector and Programmatic do not change a bit.
//
// Launch: grid x = ceil(M / TileM) * ceil(N / TileN), the row tiles of one column tile adjacent so that W is
// read from memory once; block x = Threads. Vector: K % 8 == 0, X and W and their row strides are multiples
// of 16 bytes. Programmatic: may be launched so.
#include "device/bf16.cuh"
#include "device/dependent_launch.cuh"
#include "device/launch.cuh"
#include "device/math.cuh"
#include "device/memory.cuh"
#include "device/shared.cuh"
#include "device/warp.cuh"
#include "skinny_gemm/block.cuh"

namespace jitsmith {

inline constexpr int k_chunk = 8;  // elements of one 16-byte load

// The elements of a chunk. Spelled out here and below: a loop over them costs the compiler a third of its
// time.
struct Chunk {
  float v0, v1, v2, v3, v4, v5, v6, v7;
};

JITSMITH_DEVICE float low_half(uint32 pair) {
  return float_from_bits(pair << 16);
}
JITSMITH_DEVICE float high_half(uint32 pair) {
  return float_from_bits(pair & 0xffff0000u);
}

JITSMITH_DEVICE Chunk unpack(uint4x p) {
  return {low_half(p.x), high_half(p.x), low_half(p.y), high_half(p.y),
          low_half(p.z), high_half(p.z), low_half(p.w), high_half(p.w)};
}

JITSMITH_DEVICE float add_products(const Chunk& x, const Chunk& w, float sum) {
  sum = fma_rn(x.v0, w.v0, sum);
  sum = fma_rn(x.v1, w.v1, sum);
  sum = fma_rn(x.v2, w.v2, sum);
  sum = fma_rn(x.v3, w.v3, sum);
  sum = fma_rn(x.v4, w.v4, sum);
  sum = fma_rn(x.v5, w.v5, sum);
  sum = fma_rn(x.v6, w.v6, sum);
  return fma_rn(x.v7, w.v7, sum);
}

// Adds the products of this thread's chunks to `sums`, in order: 16 bytes a load, the loads of Unroll chunks
// issued before the first is used. Programmatic: the first chunks of W are asked for before the kernel in
// front has ended, everything of X after.
template <int Threads, int TileM, int TileN, int Unroll, bool Programmatic>
JITSMITH_DEVICE void add_products_vector(const bf16* const (&x_rows)[TileM],
                                         const bf16* const (&w_rows)[TileN], uint32 thread, uint32 k,
                                         float (&sums)[TileM * TileN]) {
  const uint32 chunks = k / k_chunk;
  bool waits = Programmatic;
#pragma unroll 1
  for (uint32 base = thread; base < chunks; base += Threads * Unroll) {
    uint4x w[Unroll][TileN];
    uint4x x[Unroll][TileM];
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      // Past the end the last chunk is loaded once more and not used: a load behind a branch would wait for
      // the ones before.
      const uint32 first = min(base + static_cast<uint32>(u * Threads), chunks - 1) * k_chunk;
#pragma unroll
      for (int j = 0; j < TileN; ++j) w[u][j] = load16_streaming(w_rows[j] + first);
      if constexpr (!Programmatic) {
#pragma unroll
        for (int i = 0; i < TileM; ++i) x[u][i] = load16(x_rows[i] + first);
      }
    }
    if constexpr (Programmatic) {
      if (waits) wait_for_dependency();
      waits = false;
#pragma unroll
      for (int u = 0; u < Unroll; ++u)
#pragma unroll
        for (int i = 0; i < TileM; ++i)
          x[u][i] = load16(x_rows[i] + min(base + static_cast<uint32>(u * Threads), chunks - 1) * k_chunk);
    }
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const bool inside = base + static_cast<uint32>(u * Threads) < chunks;
      Chunk xs[TileM];
#pragma unroll
      for (int i = 0; i < TileM; ++i) xs[i] = unpack(x[u][i]);
#pragma unroll
      for (int j = 0; j < TileN; ++j) {
        const Chunk ws = unpack(w[u][j]);
#pragma unroll
        for (int i = 0; i < TileM; ++i) {
          const float sum = add_products(xs[i], ws, sums[i * TileN + j]);
          sums[i * TileN + j] = inside ? sum : sums[i * TileN + j];
        }
      }
    }
  }
  if (waits) wait_for_dependency();
}

// The same products in the same order, an element a load: any K, any alignment.
template <int Threads, int TileM, int TileN>
JITSMITH_DEVICE void add_products_scalar(const bf16* const (&x_rows)[TileM],
                                         const bf16* const (&w_rows)[TileN], uint32 thread, uint32 k,
                                         float (&sums)[TileM * TileN]) {
#pragma unroll 1
  for (uint32 e = thread * k_chunk; e < k;) {
    float xs[TileM];
#pragma unroll
    for (int i = 0; i < TileM; ++i) xs[i] = to_float(x_rows[i][e]);
#pragma unroll
    for (int j = 0; j < TileN; ++j) {
      const float w = to_float(w_rows[j][e]);
#pragma unroll
      for (int i = 0; i < TileM; ++i) sums[i * TileN + j] = fma_rn(xs[i], w, sums[i * TileN + j]);
    }
    ++e;
    if (e % k_chunk == 0) e += (Threads - 1) * k_chunk;  // on to this thread's next chunk
  }
}

// Where the rows of a tile start. A tile that reaches past the last row has that one again instead; what is
// computed from it is dropped.
template <int Tile>
JITSMITH_DEVICE void find_rows(const bf16* matrix, int64 stride, int first, int extent,
                               const bf16* (&rows)[Tile]) {
  rows[0] = computed_once(matrix + first * stride);
#pragma unroll
  for (int i = 1; i < Tile; ++i) rows[i] = computed_once(rows[i - 1] + (first + i < extent ? stride : 0));
}

// The butterfly sum over the 32 lanes of each of `Count` values at once: lane l gets the sum of value l / (32
// / Count). Halving what a lane carries at each distance takes 31 shuffles for 32 values, not 160, and every
// sum is still the tree 16, 8, 4, 2, 1.
template <int Distance = 16, int Count>
JITSMITH_DEVICE float sum_over_warp(const float (&values)[Count], uint32 lane) {
  if constexpr (Distance == 0) {
    return values[0];
  } else if constexpr (Count == 1) {
    const float sum[1] = {add_rn(values[0], shuffle_xor(values[0], Distance))};
    return sum_over_warp<Distance / 2>(sum, lane);
  } else {
    const bool upper = (lane & Distance) != 0;
    float sums[Count / 2];
#pragma unroll
    for (int i = 0; i < Count / 2; ++i) {
      const float kept = select(upper, values[i + Count / 2], values[i]);
      const float sent = select(upper, values[i], values[i + Count / 2]);
      sums[i] = add_rn(kept, shuffle_xor(sent, Distance));
    }
    return sum_over_warp<Distance / 2>(sums, lane);
  }
}

template <int Threads, int TileM, int TileN, int Unroll, bool Vector, bool Programmatic, class Out>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(Threads) skinny_gemm_simt(SkinnyGemmArgs args) {
  constexpr int k_warps = Threads / 32;
  constexpr int k_outputs = TileM * TileN;
  struct Shared {
    float partial[k_warps][k_outputs];
  };
  Shared& shared = block_shared<Shared>();

  const auto [m_first, n_first] = first_output<TileM, TileN>(args);
  const uint32 thread = thread_index_x();

  const bf16* x_rows[TileM];
  const bf16* w_rows[TileN];
  find_rows(static_cast<const bf16*>(args.x), args.x_stride, m_first, args.m, x_rows);
  find_rows(static_cast<const bf16*>(args.w), args.w_stride, n_first, args.n, w_rows);

  if constexpr (Programmatic) {
    launch_dependents();
    // Into the L2 cache, beyond what the first loads ask for.
    constexpr uint32 k_line = 64;
#pragma unroll 1
    for (uint32 e = (Vector ? Threads * Unroll * k_chunk : 0) + thread * k_line;
         e < static_cast<uint32>(args.k); e += Threads * k_line)
#pragma unroll
      for (int j = 0; j < TileN; ++j) prefetch_line(w_rows[j] + e);
    if constexpr (!Vector) wait_for_dependency();
  }

  float sums[k_outputs] = {};
  if constexpr (Vector)
    add_products_vector<Threads, TileM, TileN, Unroll, Programmatic>(x_rows, w_rows, thread,
                                                                     static_cast<uint32>(args.k), sums);
  else
    add_products_scalar<Threads, TileM, TileN>(x_rows, w_rows, thread, static_cast<uint32>(args.k), sums);

  const uint32 lane = lane_index();
  const float sum = sum_over_warp(sums, lane);
  constexpr uint32 k_lanes_per_output = 32 / k_outputs;
  if (lane % k_lanes_per_output == 0) shared.partial[warp_index()][lane / k_lanes_per_output] = sum;
  sync_block();

  const int m = m_first + static_cast<int>(thread) / TileN;
  const int n = n_first + static_cast<int>(thread) % TileN;
  if (thread >= k_outputs || m >= args.m || n >= args.n) return;
  float y = shared.partial[0][thread];
#pragma unroll
  for (int warp = 1; warp < k_warps; ++warp) y = add_rn(y, shared.partial[warp][thread]);
  store_output<Out>(args, m, n, y);
}

}  // namespace jitsmith
