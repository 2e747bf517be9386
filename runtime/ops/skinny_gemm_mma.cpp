// The variant on the tensor cores: which parameters may be used, which are worth trying, what they cost.
#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

#include <algorithm>
#include <cmath>

namespace jitsmith {
namespace {

constexpr std::int64_t k_span = 128;  // of K, that a warp sums at a time

Schema mma_schema() {
  return Schema()
      .integer("warps", {.min = 1, .max = 16}, "warps of a block; they share K", 8)
      .integer("cluster", {.listed = {1, 2, 4, 8}}, "blocks of a cluster; they share K", 1)
      .integer("tile_m", {.listed = {8, 16, 32}}, "rows of Y that a cluster computes", 8)
      .integer("tile_n", {.listed = {16, 32}}, "columns of Y that a cluster computes", 16)
      .boolean("vector", "16-byte loads; without it, any alignment and any K", true)
      .boolean("programmatic", "for programmatic dependent launches", false)
      .type("out", {ElementType::bf16, ElementType::f32}, "type of Y and residual", ElementType::bf16)
      .rule(
          "(warps + 1) x tile_m x (tile_n + 4) = ({warps} + 1) x {tile_m} x ({tile_n} + 4) is more than the "
          "12288 sums that 48 KiB of shared memory hold; lower one",
          [](const Params& p) {
            return (p.integer("warps") + 1) * p.integer("tile_m") * (p.integer("tile_n") + 4) <= 12288;
          });
}

// Of a thread: the operands in flight, the sums and two chains of products of each pair of tiles, addresses.
template <class Number>
constexpr Number registers_of_tiles(Number x_tiles, Number w_tiles) {
  return 28 + (x_tiles > 2 ? 8 : 16) * (2 * w_tiles + x_tiles) + 18 * w_tiles * x_tiles;
}

// What a thread of a block of so many warps can have. Registers are given to four warps at a time.
constexpr std::int64_t registers_of_block(std::int64_t warps) {
  return std::min<std::int64_t>(250, 65536 / (128 * ceil_div(warps, 4)));
}

// The smallest tile that holds all rows.
std::int64_t mma_tile_m(std::int64_t m) {
  return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

// For each way to cut the work into tiles and clusters, the numbers of warps that share the spans of K
// evenly, in one turn, two, and so on.
std::vector<Params> mma_candidates(const Params& request, const DeviceFacts& device) {
  // On the host a product of the tensor cores takes longer than the sums that it stands for.
  if (device.target.executor == Executor::host) return {};
  constexpr std::int64_t k_max_warps = 16, k_few_warps = 3;
  const std::int64_t tile_m = mma_tile_m(request.integer("m")), n = request.integer("n");
  const std::int64_t spans = std::max<std::int64_t>(1, ceil_div(request.integer("k"), k_span));
  std::vector<Params> candidates;
  for (const std::int64_t cluster : {1, 2, 4, 8})
    for (const std::int64_t tile_n : {16, 32}) {
      const std::int64_t blocks = ceil_div(n, tile_n) * cluster;
      // Clusters are for few tiles, wide tiles for many.
      if (cluster > 1 && 10 * blocks > 23 * device.multiprocessors) continue;
      if (tile_n > 16 && blocks * tile_m < 8 * device.multiprocessors) continue;
      std::int64_t last = 0;
      for (std::int64_t turns = 1; turns <= spans; ++turns) {
        const std::int64_t warps = ceil_div(spans, cluster * turns);
        if (warps < k_few_warps && turns > 2) break;
        if (warps == last || warps > k_max_warps) continue;
        last = warps;
        if (registers_of_tiles(tile_m / 8, tile_n / 16) <= registers_of_block(warps))
          candidates.push_back({{"warps", warps},
                                {"cluster", cluster},
                                {"tile_m", tile_m},
                                {"tile_n", tile_n},
                                {"vector", request.flag("aligned")},
                                {"programmatic", request.flag("programmatic")},
                                {"out", request.type("out")}});
      }
    }
  return candidates;
}

std::string mma_misfit(const Params& request, const Params& params, const DeviceFacts&) {
  if (request.flag("batch_invariant")) return "batch_invariant keeps to the simt variant for every M";
  return skinny_gemm_misfit(request, params);
}

LaunchShape mma_shape(const Params& request, const Params& params) {
  const std::int64_t cluster = params.integer("cluster");
  return {.grid = {static_cast<std::uint32_t>(skinny_gemm_tiles(request, params) * cluster), 1, 1},
          .block = {static_cast<std::uint32_t>(32 * params.integer("warps")), 1, 1},
          .cluster = static_cast<std::uint32_t>(cluster)};
}

// Fitted on an H200 (bench/results): plain launches over 22 shapes at M 1, 2, 4, 8 and 16, where what is
// chosen among all candidates of both variants is within 1.6 % of the best in the mean and 12.4 % at worst;
// programmatic launches over the 9 shapes of a decode step at M 1 and 8, within 5.5 % in the mean.
struct MmaConstants {
  double launch_us, load_us, product_us, last_wave, memory_rate, x_from_memory, warp_us, cluster_us,
      cluster_waste, footprint_us;
};
constexpr MmaConstants k_mma_plain{1.74, 0.404, 0.029, 0.30, 0.891, 0.015, 0.074, 0.381, 0.0152, 0};
constexpr MmaConstants k_mma_programmatic{0.319, 0.60,  0.021, 0.101,  0.693,
                                          0.320, 0.041, 0.182, 0.0303, 0.113};

// Time = a launch + the slower of memory and latency, with a soft maximum, since they overlap only in part.
//   memory   W once for each row tile and a part of X for each tile (caches have the rest), at the rate of
//            the device, or at that which the loads in flight allow
//   latency  a warp's turns, one after the other, each a batch of loads and 8 products of each pair of
//            tiles; then the sums over the warps
// Blocks beyond one resident wave wait for a place and take the latency of a whole wave. Clusters cost their
// barriers, and places that no whole cluster fits into. Programmatic launches overlap the better, the less of
// the device a kernel takes.
double mma_cost_us(const Params& request, const Params& params, const DeviceFacts& device) {
  const MmaConstants& c = params.flag("programmatic") ? k_mma_programmatic : k_mma_plain;
  const double n = as_double(request, "n"), k = as_double(request, "k"), warps = as_double(params, "warps");
  const double tile_n = as_double(params, "tile_n"), tile_m = as_double(params, "tile_m");
  const double x_tiles = tile_m / 8, w_tiles = tile_n / 16, cluster = as_double(params, "cluster");
  const double tiles = static_cast<double>(skinny_gemm_tiles(request, params)), blocks = tiles * cluster;
  const double spans = std::max(1.0, std::ceil(k / k_span)), turns = std::ceil(spans / (warps * cluster));

  // Registers are given to a warp by eights of a thread.
  const double registers = std::ceil(registers_of_tiles(x_tiles, w_tiles) / 8) * 8, threads = 32 * warps;
  const auto [resident, waves, last_wave] =
      waves_of(blocks, threads, registers, device, c.last_wave, 1 - c.cluster_waste * std::log2(cluster));

  const double rate = device.memory_gb_per_s * 1e3 * c.memory_rate;
  const double m_tiles = std::ceil(as_double(request, "m") / tile_m);
  const double w_bytes = m_tiles * n * k * 2,
               x_bytes = tiles * std::min(as_double(request, "m"), tile_m) * k * 2;
  const double in_flight =
      std::min(blocks, resident) * std::min(warps, spans / cluster) * tile_n * k_span * 2;
  const double memory_us = (w_bytes + c.x_from_memory * x_bytes) / rate * last_wave;
  const double in_flight_us = w_bytes / in_flight * c.load_us * last_wave;
  const double latency_us =
      turns * (c.load_us + 8 * c.product_us * x_tiles * w_tiles) * std::max(1.0, std::ceil(waves)) +
      c.warp_us * warps;
  return c.launch_us + c.cluster_us * std::log2(cluster) +
         c.footprint_us * footprint(blocks, threads, registers, device) +
         soft_max({memory_us, in_flight_us, latency_us});
}

}  // namespace

Variant skinny_gemm_mma(const TemplateFiles& files) {
  Variant mma;
  mma.name = "mma";
  mma.summary =
      "Tensor cores, W as the operand of 16 rows. Warp w of block r of a cluster owns every "
      "(warps x cluster)th span of 128 k, from span r x warps + w on; a span is summed by 8 products of 16 "
      "k, "
      "in two chains from +0 that are then added; spans are added in fp32 in increasing k, warps from 0 "
      "upwards, blocks from 0 upwards; then bias, then residual, then one rounding. Only `warps` and "
      "`cluster` enter that order, but the inner summation is the hardware's.";
  mma.kernel = {.path = "skinny_gemm/mma.cu",
                .source = files.text("skinny_gemm/mma.cu").value(),
                .function = "jitsmith::skinny_gemm_mma",
                .schema = mma_schema()};
  mma.order = {"warps", "cluster"};
  mma.candidates = mma_candidates;
  mma.misfit = mma_misfit;
  mma.cost_us = mma_cost_us;
  mma.shape = mma_shape;
  return mma;
}

}  // namespace jitsmith
