#include "read_rate.hpp"

namespace jitsmith::bench {
namespace {

constexpr std::int64_t k_bytes = std::int64_t{1} << 30;
constexpr std::int64_t k_threads = 512;

// Every byte of a buffer loaded once, 16 bytes a load, four in flight a thread, nothing written.
constexpr const char* k_read_floor_source = R"(#include "device/launch.cuh"
#include "device/memory.cuh"

namespace jitsmith {

template <int Threads>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(Threads) read_floor(const void* data, int64 chunks, uint32* never) {
  constexpr int k_unroll = 4;
  const int64 stride = static_cast<int64>(grid_extent_x()) * Threads;
  uint32 seen = 0;
  for (int64 i = static_cast<int64>(block_index_x()) * Threads + thread_index_x(); i < chunks; i += stride * k_unroll) {
    uint4x v[k_unroll];
#pragma unroll
    for (int u = 0; u < k_unroll; ++u)
      v[u] = load16_streaming(static_cast<const uint4x*>(data) + min(i + u * stride, chunks - 1));
#pragma unroll
    for (int u = 0; u < k_unroll; ++u) seen |= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (seen == 0x9e3779b9u) *never = seen;  // keeps the loads; random data does not reach it in practice
}

}  // namespace jitsmith
)";

Op read_floor_op() {
  Variant variant;
  variant.name = "plain";
  variant.kernel = {.path = "read_floor.cu",
                    .source = k_read_floor_source,
                    .function = "jitsmith::read_floor",
                    .schema = Schema().integer("threads", {.min = 32, .max = 1024, .multiple_of = 32},
                                               "threads of a block", k_threads)};
  variant.shape = [](const Params&, const Params&) { return LaunchShape{}; };
  Op op;
  op.name = "read_floor";
  op.variants = {variant};
  op.generic_variant = "plain";
  op.generic_params = [](const Params&) { return Params{{"threads", k_threads}}; };
  return op;
}

}  // namespace

ReadRate measure_read_rate(Engine& engine, const CudaGraphs& cuda) {
  engine.add(read_floor_op());
  const Plan plan = engine.plan(Request{"read_floor", {}});
  Device& device = engine.current_device();
  const Buffer data(device, k_bytes), never(device, 4);

  // Whole waves of resident blocks, a few sizes; the best is the ceiling.
  std::vector<Contender> contenders;
  for (const std::uint32_t blocks_per_multiprocessor : {2u, 4u, 8u, 16u})
    contenders.push_back({[&, blocks_per_multiprocessor](CUstream stream, std::size_t) {
      const LaunchShape shape{.grid = {device.facts().multiprocessors * blocks_per_multiprocessor, 1, 1},
                              .block = {k_threads, 1, 1}};
      plan.launch(stream, shape, static_cast<const void*>(data.data()), static_cast<long long>(k_bytes / 16),
                  never.data());
    }});
  double best = 0;
  for (const double us : median_us(cuda, contenders, 10, 9))
    best = std::max(best, static_cast<double>(k_bytes) / us / 1e3);
  return {best};
}

}  // namespace jitsmith::bench
