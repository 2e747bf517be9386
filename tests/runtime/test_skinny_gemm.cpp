// skinny_gemm on the host target against its two references: the bits of its own order of summation, and
// fp64.
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>

#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/pairwise.hpp"
#include "support/skinny_gemm_cases.hpp"

namespace jitsmith {
namespace {

using namespace test;

// Instantiations that cover every pair of threads, tile, unroll, load and output that matters; few, for each
// takes seconds to compile for the host.
struct Instantiation {
  std::int64_t threads, tile_m, tile_n, unroll;
  bool vector, programmatic;
  ElementType out;

  std::string forced() const {
    return fmt::format("simt:threads={},tile_m={},tile_n={},unroll={},vector={},programmatic={},out={}",
                       threads, tile_m, tile_n, unroll, vector, programmatic, name_of(out));
  }
};

constexpr Instantiation k_instantiations[] = {
    {32, 1, 1, 1, true, false, ElementType::bf16},  {64, 2, 4, 2, true, true, ElementType::f32},
    {160, 8, 4, 1, true, true, ElementType::bf16},  {256, 4, 8, 1, true, false, ElementType::f32},
    {128, 1, 2, 4, true, false, ElementType::f32},  {128, 8, 4, 1, false, false, ElementType::bf16},
    {1024, 2, 1, 1, false, true, ElementType::f32}, {64, 1, 1, 8, true, false, ElementType::bf16},
};

struct Case {
  Instantiation with;
  GemmCase gemm{};
};

// The case that a row of levels means.
Case case_of(const Instantiation& with, const std::vector<std::size_t>& level) {
  const std::int64_t step = with.threads * 8 * with.unroll;  // of k that a block takes at once
  const std::int64_t ms[] = {0, 1, 2, 3, 4, 5, 8, 31, 32};
  const std::int64_t ns[] = {0, 1, with.tile_n - 1, with.tile_n, with.tile_n + 1, 129};
  const std::int64_t ks[] = {0, 1, 7, 8, 9, step - 1, step, step + 1, 1024 + 8};
  return {with, gemm_case({.m = ms[level[0]],
                           .n = ns[level[1]],
                           .k = ks[level[2]],
                           .out = with.out,
                           .aligned = with.vector,
                           .programmatic = with.programmatic},
                          level)};
}

void check_case(Engine& engine, const Case& c, std::uint64_t seed) {
  CAPTURE(c.with.forced());
  CAPTURE(to_string(c.gemm.request));
  const Plan plan =
      engine.plan({"skinny_gemm", params_of(c.gemm.request)}, nullptr, ForcedChoice::parse(c.with.forced()));
  const GemmData data = gemm_data(c.gemm.request, c.gemm.values, seed);
  const GemmResult result =
      run_gemm(engine.current_device(), TypedPlan<SkinnyGemm>(plan, c.gemm.request), data, c.gemm.layout);
  CHECK(result.guards_intact);
  const Array model = skinny_gemm_simt_model(data.operands(), c.with.threads, c.gemm.request.out);
  CHECK(result.y.bytes == model.bytes);
  if (c.gemm.values == GemmValues::extreme) return;
  const CheckResult check = check_skinny_gemm(data.operands(), result.y);
  CHECK_MESSAGE(check.passed, check.summary);
}

// Every pair of levels of any two of: m, n, k, bias, residual, padding, values, and the instantiation.
void check_pairs(Engine& engine, std::span<const Instantiation> instantiations) {
  std::uint64_t seed = 0;
  for (const auto& row : pairwise({9, 6, 9, 3, 3, 3, 4, instantiations.size()}))
    check_case(engine, case_of(instantiations[row[7]], row), ++seed);
}

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm");

TEST_CASE(
    "Every pair of shape, stride, operand and parameter levels gives the model's bits and nothing outside "
    "Y") {
  Engine engine(host_options(kernel_cache()));
  check_pairs(engine, k_instantiations);
}

TEST_CASE("Sums over every warp and several rounds of chunks have the model's bits") {
  Engine engine(host_options(kernel_cache()));
  for (const Instantiation& with : k_instantiations) {
    Case c{.with = with};
    c.gemm.request = {.m = with.tile_m + 1,
                      .n = with.tile_n + 3,
                      .k = 2 * with.threads * 8 * with.unroll + (with.vector ? 8 : 5),
                      .out = with.out,
                      .aligned = with.vector,
                      .programmatic = with.programmatic};
    check_case(engine, c, 1);
  }
}

TEST_CASE("What selection chooses by itself is right too") {
  Engine engine(host_options(kernel_cache()));
  for (const SkinnyGemm& request :
       {SkinnyGemm{.m = 1, .n = 40, .k = 512}, SkinnyGemm{.m = 7, .n = 33, .k = 100, .aligned = false}}) {
    CAPTURE(to_string(request));
    const auto plan = engine.plan(request);
    const GemmData data = gemm_data(request, GemmValues::random, 3);
    const GemmResult result = run_gemm(engine.current_device(), plan, data);
    CHECK(result.guards_intact);
    const std::int64_t threads = plan.state().selection.params.integer("threads");
    CHECK(result.y.bytes == skinny_gemm_simt_model(data.operands(), threads, request.out).bytes);
  }
}

TEST_CASE("Another order of blocks and threads changes no bit") {
  std::vector<std::byte> first;
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Options options = host_options(kernel_cache());
    options.host_seed = seed;
    options.forced["skinny_gemm"] = k_instantiations[1].forced();
    Engine engine(options);
    const SkinnyGemm request{.m = 5, .n = 9, .k = 1032, .out = ElementType::f32, .programmatic = true};
    const GemmResult result =
        run_gemm(engine.current_device(), engine.plan(request), gemm_data(request, GemmValues::random, 1));
    if (seed == 0) first = result.y.bytes;
    CHECK(result.y.bytes == first);
  }
}

TEST_CASE("The array interface runs the demo, and its check accepts it") {
  Engine engine(host_options(kernel_cache()));
  const Op& op = engine.op("skinny_gemm");
  const ArrayInterface& arrays = *op.arrays;
  Params demo = arrays.demo;
  demo.set("n", std::int64_t{48});
  demo.set("k", std::int64_t{256});
  const Params request = op.request.complete(demo, "skinny_gemm");
  Arrays inputs = arrays.make_inputs(request, 7);
  Params settings;
  CHECK(op.request.complete(arrays.make_request(inputs, settings), "skinny_gemm") == request);
  Arrays outputs = arrays.make_outputs(request, inputs);
  Pointers pointers;
  for (auto& [name, array] : inputs) pointers[name] = array.bytes.data();
  for (auto& [name, array] : outputs) pointers[name] = array.bytes.data();
  Arrays all = inputs;
  all.insert(outputs.begin(), outputs.end());
  CHECK_FALSE(arrays.check(request, inputs, outputs).passed);
  arrays.launch(engine.plan({"skinny_gemm", request}), nullptr, all, pointers);
  const CheckResult check = arrays.check(request, inputs, outputs);
  CHECK_MESSAGE(check.passed, check.summary);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("skinny_gemm [exhaustive]");

TEST_CASE("Every candidate gives the model's bits on every pair of levels") {
  Engine engine(host_options(kernel_cache()));
  const Op& op = engine.op("skinny_gemm");
  for (const std::int64_t m : {1, 2, 4, 8})
    for (const ElementType out : {ElementType::bf16, ElementType::f32})
      for (const bool aligned : {true, false}) {
        const Params request = op.request.complete(
            params_of(SkinnyGemm{.m = m, .n = 64, .k = 64, .out = out, .aligned = aligned}), "skinny_gemm");
        for (const Params& p : op.variant("simt")->candidates(request, device_profile("host"))) {
          const Instantiation with{p.integer("threads"), p.integer("tile_m"), p.integer("tile_n"),
                                   p.integer("unroll"),  p.flag("vector"),    p.flag("programmatic"),
                                   p.type("out")};
          check_pairs(engine, {&with, 1});
        }
      }
}

TEST_SUITE_END();

}  // namespace jitsmith
