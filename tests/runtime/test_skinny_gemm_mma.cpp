// skinny_gemm's tensor-core variant on the host target, against the exact product of integers and fp64.
#include <cstring>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/pairwise.hpp"
#include "support/skinny_gemm_cases.hpp"

namespace jitsmith {
namespace {

using namespace test;

struct Instantiation {
  std::int64_t warps, cluster, tile_m, tile_n;
  bool vector, programmatic;
  ElementType out;

  std::string forced() const {
    return fmt::format("mma:warps={},cluster={},tile_m={},tile_n={},vector={},programmatic={},out={}", warps,
                       cluster, tile_m, tile_n, vector, programmatic, name_of(out));
  }
};

// Few, for each takes seconds to compile for the host.
constexpr Instantiation k_instantiations[] = {
    {1, 1, 8, 16, true, true, ElementType::f32},   {2, 1, 16, 32, true, false, ElementType::bf16},
    {2, 2, 32, 16, true, false, ElementType::f32}, {1, 4, 8, 16, true, true, ElementType::bf16},
    {1, 8, 8, 32, true, false, ElementType::f32},  {2, 2, 8, 16, false, true, ElementType::bf16}};

struct Case {
  Instantiation with;
  GemmCase gemm{};
};

Case case_of(const Instantiation& with, const std::vector<std::size_t>& level) {
  const std::int64_t span = 128 * with.warps * with.cluster;  // of k that a cluster takes at once
  const std::int64_t ms[] = {0, 1, 7, 8, 9, 17, 32};
  const std::int64_t ns[] = {0, 1, 15, 16, 17, 33};
  const std::int64_t ks[] = {0, 1, 7, 8, 127, 128, 136, span, span + 129};
  return {with, gemm_case({.m = ms[level[0]],
                           .n = ns[level[1]],
                           .k = ks[level[2]],
                           .out = with.out,
                           .aligned = with.vector,
                           .programmatic = with.programmatic},
                          level)};
}

TypedPlan<SkinnyGemm> plan_of(Engine& engine, const Case& c) {
  return {
      engine.plan({"skinny_gemm", params_of(c.gemm.request)}, nullptr, ForcedChoice::parse(c.with.forced())),
      c.gemm.request};
}

void check_case(Engine& engine, const Case& c, std::uint64_t seed) {
  CAPTURE(c.with.forced());
  CAPTURE(to_string(c.gemm.request));
  const GemmData data = gemm_data(c.gemm.request, c.gemm.values, seed);
  const GemmResult result = run_gemm(engine.current_device(), plan_of(engine, c), data, c.gemm.layout);
  CHECK(result.guards_intact);
  const CheckResult check = check_skinny_gemm(data.operands(), result.y);
  CHECK_MESSAGE(check.passed, check.summary);
  // Sums of small integers are exact in any order.
  if (c.gemm.values == GemmValues::integers)
    CHECK(result.y.bytes == skinny_gemm_simt_model(data.operands(), 32, c.gemm.request.out).bytes);
}

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm mma");

TEST_CASE(
    "Every pair of shape, stride, operand and parameter levels is right, and nothing outside Y is written") {
  Engine engine(host_options(kernel_cache()));
  std::uint64_t seed = 0;
  for (const auto& row : pairwise({7, 6, 9, 3, 3, 3, 3, std::size(k_instantiations)}))
    check_case(engine, case_of(k_instantiations[row[7]], row), ++seed);
}

TEST_CASE("A row has the same bits whatever M it comes with, and with any tile") {
  Engine engine(host_options(kernel_cache()));
  const auto rows = [&](std::int64_t m, std::int64_t tile_m) {
    Case c{.with = {2, 2, tile_m, 16, true, false, ElementType::f32}};
    c.gemm.request = {.m = m, .n = 20, .k = 1000, .out = ElementType::f32};
    const GemmData all = gemm_data({.m = 32, .n = 20, .k = 1000}, GemmValues::random, 5);
    GemmData data = gemm_data(c.gemm.request, GemmValues::random, 5);
    data.w = all.w;
    std::memcpy(data.x.bytes.data(), all.x.bytes.data(), data.x.bytes.size());
    return run_gemm(engine.current_device(), plan_of(engine, c), data).y.bytes;
  };
  const std::vector<std::byte> whole = rows(32, 8);
  for (const auto& [m, tile_m] :
       {std::pair<std::int64_t, std::int64_t>{1, 8}, {5, 8}, {9, 8}, {31, 8}, {32, 32}}) {
    CAPTURE(m);
    const std::vector<std::byte> part = rows(m, tile_m);
    CHECK(std::memcmp(part.data(), whole.data(), part.size()) == 0);
  }
}

TEST_CASE("Another order of blocks and threads changes no bit of the tensor-core variant") {
  std::vector<std::byte> first;
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Options options = host_options(kernel_cache());
    options.host_seed = seed;
    Engine engine(options);
    Case c{.with = k_instantiations[3]};
    c.gemm.request = {.m = 5, .n = 40, .k = 1032, .programmatic = true};
    const GemmData data = gemm_data(c.gemm.request, GemmValues::random, 1);
    const GemmResult result = run_gemm(engine.current_device(), plan_of(engine, c), data);
    if (seed == 0) first = result.y.bytes;
    CHECK(result.y.bytes == first);
  }
}

TEST_SUITE_END();

}  // namespace jitsmith
