// The variant on the plain fp32 units: which parameters may be used, which are worth trying, what they cost.
#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace jitsmith {
namespace {

// The threads of a block decide the order of summation: batch-invariant requests all use this number.
constexpr std::int64_t k_invariant_threads = 128;

Schema simt_schema() {
  return Schema()
      .integer("threads", {.min = 32, .max = 1024, .multiple_of = 32}, "threads of a block; they share K",
               128)
      .integer("tile_m", {.listed = {1, 2, 4, 8}}, "rows of Y that a block computes", 1)
      .integer("tile_n", {.listed = {1, 2, 4, 8}}, "columns of Y that a block computes", 1)
      .integer("unroll", {.listed = {1, 2, 4, 8}},
               "chunks of 8 k that a thread loads before it uses the first", 1)
      .boolean("vector", "16-byte loads; without it, any alignment and any K", true)
      .boolean("programmatic", "for programmatic dependent launches", false)
      .type("out", {ElementType::bf16, ElementType::f32}, "type of Y and residual", ElementType::bf16)
      .rule(
          "tile_m x tile_n is {tile_m} x {tile_n}, more than the 32 lanes that reduce it; make it 32 at most",
          [](const Params& p) { return p.integer("tile_m") * p.integer("tile_n") <= 32; })
      .rule(
          "unroll x (tile_m + tile_n) = {unroll} x ({tile_m} + {tile_n}) is more than the 16 loads of 16 "
          "bytes that "
          "registers hold; lower one",
          [](const Params& p) {
            return p.integer("unroll") * (p.integer("tile_m") + p.integer("tile_n")) <= 16;
          })
      .rule("unroll={unroll} has no meaning without vector loads; set it to 1",
            [](const Params& p) { return p.flag("vector") || p.integer("unroll") == 1; });
}

// The smallest tile that holds all rows in one, or the largest tile there is.
std::int64_t simt_tile_m(std::int64_t m) {
  return m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : 8;
}

Params simt_params(const Params& request, std::int64_t threads, std::int64_t tile_m, std::int64_t tile_n,
                   std::int64_t unroll, bool vector) {
  return {{"threads", threads},        {"tile_m", tile_m}, {"tile_n", tile_n},
          {"unroll", unroll},          {"vector", vector}, {"programmatic", request.flag("programmatic")},
          {"out", request.type("out")}};
}

std::vector<Params> simt_candidates(const Params& request, const DeviceFacts&) {
  const std::int64_t tile_m = simt_tile_m(request.integer("m"));
  const std::int64_t chunks = ceil_div(request.integer("k"), 8);
  const bool vector = request.flag("aligned");
  std::vector<Params> candidates;
  for (const std::int64_t threads : {64, 128, 256, 512})
    for (const std::int64_t tile_n : {1, 2, 4})
      for (const std::int64_t unroll : {1, 2, 4, 8}) {
        const bool too_many_loads = unroll * (tile_m + tile_n) > 12 || (!vector && unroll > 1);
        // Of these loads more than half would be in vain.
        const bool more_than_k = threads * unroll > 64 && threads * unroll >= 2 * chunks;
        if (!too_many_loads && !more_than_k)
          candidates.push_back(simt_params(request, threads, tile_m, tile_n, unroll, vector));
      }
  return candidates;
}

std::string simt_misfit(const Params& request, const Params& params, const DeviceFacts&) {
  if (request.flag("batch_invariant") && params.integer("threads") != k_invariant_threads)
    return fmt::format("batch_invariant needs threads={}", k_invariant_threads);
  return skinny_gemm_misfit(request, params);
}

LaunchShape simt_shape(const Params& request, const Params& params) {
  return {.grid = {static_cast<std::uint32_t>(skinny_gemm_tiles(request, params)), 1, 1},
          .block = {static_cast<std::uint32_t>(params.integer("threads")), 1, 1}};
}

// Fitted on an H200 (bench/results): plain launches over 22 shapes at M 1, 2 and 4, where the choice is
// within 1.7 % of the best candidate in the mean and 9.2 % at worst; programmatic launches over the 9 shapes
// of a decode step at M 1 and 8, together with the tensor-core variant.
struct SimtConstants {
  double launch_us, load_us, last_wave, issue_rate, memory_rate, footprint_us;
};
constexpr SimtConstants k_simt_plain{1.76, 0.48, 0.13, 0.82, 0.95, 0};
constexpr SimtConstants k_simt_programmatic{0.519, 0.64, 0.017, 1.71, 0.711, 0.715};

// Time = a launch + the slowest of memory, issue and latency, with a soft maximum, since they overlap only in
// part.
//   memory   W once for each row tile, at the rate of the device, or at that which the loads in flight allow
//   issue    the warp instructions of one multiprocessor: 8 multiply-adds an output and chunk, the unpacking
//            of both operands, the sums over the block
//   latency  a thread's batches of loads, one after the other
// Blocks beyond one resident wave wait for a place; a last wave that is not full costs a part of a full one.
// Programmatic launches overlap the better, the less of the device a kernel takes.
double simt_cost_us(const Params& request, const Params& params, const DeviceFacts& device) {
  const SimtConstants& c = params.flag("programmatic") ? k_simt_programmatic : k_simt_plain;
  constexpr double k_prologue = 40, k_reduction_step = 6, k_schedulers = 4;

  const double n = as_double(request, "n"), k = as_double(request, "k"),
               threads = as_double(params, "threads");
  const double tile_m = as_double(params, "tile_m"), tile_n = as_double(params, "tile_n"),
               unroll = as_double(params, "unroll");
  const double outputs = tile_m * tile_n, blocks = static_cast<double>(skinny_gemm_tiles(request, params));
  const double chunks = std::max(1.0, std::ceil(k / 8)), batches = std::ceil(chunks / (threads * unroll));

  const double registers = std::min(20 + 1.5 * outputs + 4 * unroll * (tile_m + tile_n) + 4 * tile_m,
                                    k_registers_of_multiprocessor / threads);
  const auto [resident, waves, last_wave] = waves_of(blocks, threads, registers, device, c.last_wave);

  const double bytes = std::ceil(as_double(request, "m") / tile_m) * n * k * 2;
  const double in_flight =
      std::min(blocks, resident) * threads * std::min(unroll, std::ceil(chunks / threads)) * tile_n * 16;
  const double memory_us = bytes / (device.memory_gb_per_s * 1e3 * c.memory_rate) * last_wave;
  const double in_flight_us = bytes / in_flight * c.load_us * last_wave;

  // Without vector loads a chunk is 8 loads of each row and as many unpackings.
  const double a_chunk = 8 * outputs + (params.flag("vector") ? 12 : 24) * (tile_m + tile_n);
  const double reduction = 3 * (outputs - 1) + 2 * (5 - std::log2(outputs));
  const double instructions = k_prologue + batches * unroll * a_chunk + k_reduction_step * reduction;
  const double issue_us = std::max(1.0, blocks / device.multiprocessors) * (threads / 32) * instructions /
                          k_schedulers / (device.clock_ghz * 1e3 * c.issue_rate) * last_wave;

  const double latency_us = batches * c.load_us * std::max(1.0, waves * last_wave);
  return c.launch_us + c.footprint_us * footprint(blocks, threads, registers, device) +
         soft_max({memory_us, in_flight_us, issue_us, latency_us});
}

}  // namespace

Params skinny_gemm_generic_params(const Params& request) {
  return simt_params(request, k_invariant_threads, simt_tile_m(request.integer("m")), 4, 1, false);
}

Variant skinny_gemm_simt(const TemplateFiles& files) {
  Variant simt;
  simt.name = "simt";
  simt.summary =
      "Plain fp32 units. Thread t of a block owns the 8-element chunks t, t + threads, ... of K; one "
      "fp32 accumulator per output from +0, by fmaf in increasing k; butterfly over lanes 16, 8, 4, 2, "
      "1; warps added from 0 upwards; then bias, then residual, then one rounding. Only `threads` enters "
      "that order.";
  simt.kernel = {.path = "skinny_gemm/simt.cu",
                 .source = files.text("skinny_gemm/simt.cu").value(),
                 .function = "jitsmith::skinny_gemm_simt",
                 .schema = simt_schema()};
  simt.order = {"threads"};
  simt.candidates = simt_candidates;
  simt.misfit = simt_misfit;
  simt.cost_us = simt_cost_us;
  simt.shape = simt_shape;
  return simt;
}

}  // namespace jitsmith
