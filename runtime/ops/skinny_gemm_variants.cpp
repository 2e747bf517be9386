#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr std::int64_t k_max_blocks = 2147483647;  // grid x

}  // namespace

std::int64_t skinny_gemm_blocks(const Params& request, const Params& params) {
  return ceil_div(request.integer("m"), params.integer("tile_m")) *
         ceil_div(request.integer("n"), params.integer("tile_n"));
}

std::string skinny_gemm_misfit(const Params& request, const Params& params) {
  if (params.type("out") != request.type("out"))
    return fmt::format("it writes {} and {} is wanted", name_of(params.type("out")),
                       name_of(request.type("out")));
  if (params.flag("vector") && !request.flag("aligned")) return "its 16-byte loads need aligned=true";
  if (const std::int64_t blocks = skinny_gemm_blocks(request, params); blocks > k_max_blocks)
    return fmt::format("its {} blocks are more than the {} of a launch", blocks, k_max_blocks);
  return {};
}

}  // namespace jitsmith
