// The variants of skinny_gemm, and what they share. Private.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <jitsmith/jit/template_files.hpp>
#include <jitsmith/runtime/device_facts.hpp>
#include <jitsmith/runtime/op.hpp>

namespace jitsmith {

Variant skinny_gemm_simt(const TemplateFiles& files);
Variant skinny_gemm_mma(const TemplateFiles& files);

// Parameters of the SIMT variant that serve every request.
Params skinny_gemm_generic_params(const Params& request);

// For non-negative integers, rounded up.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Of tile_m x tile_n outputs, each of which a block computes, or a cluster of blocks.
std::int64_t skinny_gemm_tiles(const Params& request, const Params& params);

// Why such a variant cannot serve the request, or "": its output type, its launch, its loads, its number of
// blocks.
std::string skinny_gemm_misfit(const Params& request, const Params& params);

// --- what the cost models share; times in us
// -----------------------------------------------------------------

inline constexpr double k_registers_of_multiprocessor = 65536;

inline double as_double(const Params& params, std::string_view name) {
  return static_cast<double>(params.integer(name));
}

struct Waves {
  double resident;   // blocks that the device holds at once
  double waves;      // how many times that all blocks are
  double last_wave;  // a factor of time: a last wave that is not full costs a part of a full one
};
// `usable`: the share of the multiprocessors that blocks find a place on.
Waves waves_of(double blocks, double threads, double registers_of_thread, const DeviceFacts& device,
               double cost_of_last_wave, double usable = 1);

// The share of the device's registers that all blocks at once would take, at most 1.
double footprint(double blocks, double threads, double registers_of_thread, const DeviceFacts& device);

// For what overlaps only in part.
double soft_max(std::initializer_list<double> times);

}  // namespace jitsmith
