#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr std::int64_t k_max_blocks = 2147483647;  // grid x

}  // namespace

std::int64_t skinny_gemm_tiles(const Params& request, const Params& params) {
  return ceil_div(request.integer("m"), params.integer("tile_m")) *
         ceil_div(request.integer("n"), params.integer("tile_n"));
}

std::string skinny_gemm_misfit(const Params& request, const Params& params) {
  if (params.type("out") != request.type("out"))
    return fmt::format("it writes {} and {} is wanted", name_of(params.type("out")),
                       name_of(request.type("out")));
  if (params.flag("programmatic") != request.flag("programmatic"))
    return fmt::format("it is {} programmatic launches and the request is {}",
                       params.flag("programmatic") ? "for" : "not for",
                       request.flag("programmatic") ? "for them" : "not");
  if (params.flag("vector") && !request.flag("aligned")) return "its 16-byte loads need aligned=true";
  const std::int64_t cluster = params.find("cluster") == nullptr ? 1 : params.integer("cluster");
  if (const std::int64_t blocks = skinny_gemm_tiles(request, params) * cluster; blocks > k_max_blocks)
    return fmt::format("its {} blocks are more than the {} of a launch", blocks, k_max_blocks);
  return {};
}

Waves waves_of(double blocks, double threads, double registers_of_thread, const DeviceFacts& device,
               double cost_of_last_wave, double usable) {
  constexpr double k_threads = 2048, k_blocks = 32;  // of a multiprocessor
  const double threads_at_once = std::min(k_threads, k_registers_of_multiprocessor / registers_of_thread);
  const double resident =
      std::clamp(std::floor(threads_at_once / threads), 1.0, k_blocks) * device.multiprocessors * usable;
  const double waves = blocks / resident;
  return {resident, waves, waves > 1 ? 1 + cost_of_last_wave * (std::ceil(waves) / waves - 1) : 1};
}

double footprint(double blocks, double threads, double registers_of_thread, const DeviceFacts& device) {
  return std::min(
      1.0, blocks * threads * registers_of_thread / (device.multiprocessors * k_registers_of_multiprocessor));
}

double soft_max(std::initializer_list<double> times) {
  double cubes = 0;
  for (const double time : times) cubes += std::pow(time, 3);
  return std::cbrt(cubes);
}

}  // namespace jitsmith
