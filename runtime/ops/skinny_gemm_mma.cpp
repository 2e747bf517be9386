// The variant on the tensor cores: which parameters may be used, which are worth trying, what they cost.
#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

#include <algorithm>
#include <cmath>

namespace jitsmith {
namespace {

constexpr std::int64_t k_span = 128;  // of K, that a warp sums at a time

Schema mma_schema() {
  return Schema()
      .integer("warps", {.listed = {1, 2, 4, 8, 16}}, "warps of a block; they share K", 8)
      .integer("tile_m", {.listed = {8, 16, 32}}, "rows of Y that a block computes", 8)
      .integer("tile_n", {.listed = {16, 32}}, "columns of Y that a block computes", 16)
      .boolean("vector", "16-byte loads; without it, any alignment and any K", true)
      .type("out", {ElementType::bf16, ElementType::f32}, "type of Y and residual", ElementType::bf16)
      .rule(
          "warps x tile_m x (tile_n + 4) = {warps} x {tile_m} x ({tile_n} + 4) is more than the 12288 sums "
          "that "
          "48 KiB of shared memory hold; lower one",
          [](const Params& p) {
            return p.integer("warps") * p.integer("tile_m") * (p.integer("tile_n") + 4) <= 12288;
          });
}

// Of a thread, for the operands in flight and the sums.
template <class Number>
constexpr Number registers_of_tiles(Number x_tiles, Number w_tiles) {
  return 16 * (2 * w_tiles + x_tiles) + 8 * w_tiles * x_tiles;
}

// The smallest tile that holds all rows.
std::int64_t mma_tile_m(std::int64_t m) {
  return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

std::vector<Params> mma_candidates(const Params& request, const DeviceFacts& device) {
  // On the host a product of the tensor cores takes longer than the sums that it stands for.
  if (device.target.executor == Executor::host) return {};
  const std::int64_t tile_m = mma_tile_m(request.integer("m"));
  const std::int64_t spans = ceil_div(request.integer("k"), k_span);
  std::vector<Params> candidates;
  for (const std::int64_t warps : {2, 4, 8, 16})
    for (const std::int64_t tile_n : {16, 32}) {
      // More than fit beside the rest of what a thread needs.
      const bool too_many_registers = registers_of_tiles(tile_m / 8, tile_n / 16) > (warps == 16 ? 112 : 150);
      if ((warps == 2 || warps <= spans) && !too_many_registers)
        candidates.push_back({{"warps", warps},
                              {"tile_m", tile_m},
                              {"tile_n", tile_n},
                              {"vector", request.flag("aligned")},
                              {"out", request.type("out")}});
    }
  return candidates;
}

std::string mma_misfit(const Params& request, const Params& params, const DeviceFacts&) {
  if (request.flag("batch_invariant")) return "batch_invariant keeps to the simt variant for every M";
  return skinny_gemm_misfit(request, params);
}

LaunchShape mma_shape(const Params& request, const Params& params) {
  return {.grid = {static_cast<std::uint32_t>(skinny_gemm_blocks(request, params)), 1, 1},
          .block = {static_cast<std::uint32_t>(32 * params.integer("warps")), 1, 1}};
}

// Time = a launch + the slower of memory and latency, with a soft maximum, since they overlap only in part.
//   memory   W once for each row tile and a part of X for each block (caches have the rest), at the rate of
//            the device, or at that which the loads in flight allow
//   latency  a warp's spans, one after the other, each a batch of loads and 8 products of each pair of tiles;
//            then the sums over the warps
// Blocks beyond one resident wave wait for a place; a last wave that is not full costs a part of a full one.
// The constants are fitted to 22 shapes at M 1, 2, 4, 8 and 16 on an H200 (bench/results): over these the
// choice among all candidates of both variants is within 1.6 % of the best in the mean and 10.4 % at worst.
double mma_cost_us(const Params& request, const Params& params, const DeviceFacts& device) {
  constexpr double k_launch_us = 1.66, k_load_us = 0.53, k_product_us = 0.026, k_warp_sum_us = 0.08;
  constexpr double k_last_wave = 0.26, k_memory_rate = 0.79, k_x_from_memory = 0.066;

  const double n = as_double(request, "n"), k = as_double(request, "k"), warps = as_double(params, "warps");
  const double tile_n = as_double(params, "tile_n"), x_tiles = as_double(params, "tile_m") / 8,
               w_tiles = tile_n / 16;
  const double blocks = static_cast<double>(skinny_gemm_blocks(request, params));
  const double spans = std::max(1.0, std::ceil(k / k_span)), batches = std::ceil(spans / warps);

  const double registers = 40 + registers_of_tiles(x_tiles, w_tiles);
  const auto [resident, waves, last_wave] = waves_of(blocks, 32 * warps, registers, device, k_last_wave);

  const double w_bytes = std::ceil(as_double(request, "m") / as_double(params, "tile_m")) * n * k * 2;
  const double x_bytes = blocks * as_double(params, "tile_m") * k * 2;
  const double in_flight = std::min(blocks, resident) * std::min(warps, spans) * tile_n * k_span * 2;
  const double memory_us =
      (w_bytes + k_x_from_memory * x_bytes) / (device.memory_gb_per_s * 1e3 * k_memory_rate) * last_wave;
  const double in_flight_us = w_bytes / in_flight * k_load_us * last_wave;
  const double latency_us =
      batches * (k_load_us + 8 * k_product_us * x_tiles * w_tiles) * std::max(1.0, waves * last_wave) +
      k_warp_sum_us * warps;
  return k_launch_us + soft_max({memory_us, in_flight_us, latency_us});
}

}  // namespace

Variant skinny_gemm_mma(const TemplateFiles& files) {
  Variant mma;
  mma.name = "mma";
  mma.summary =
      "Tensor cores, W as the operand of 16 rows. Warp w of a block owns the spans w, w + warps, ... of "
      "128 k; a span is summed by 8 products of 16 k from +0, spans are added in fp32 in increasing k, "
      "warps from 0 upwards; then bias, then residual, then one rounding. Only `warps` enters that "
      "order, but the inner summation is the hardware's.";
  mma.kernel = {.path = "skinny_gemm/mma.cu",
                .source = files.text("skinny_gemm/mma.cu").value(),
                .function = "jitsmith::skinny_gemm_mma",
                .schema = mma_schema()};
  mma.candidates = mma_candidates;
  mma.misfit = mma_misfit;
  mma.cost_us = mma_cost_us;
  mma.shape = mma_shape;
  return mma;
}

}  // namespace jitsmith
