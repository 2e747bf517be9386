// What skinny_gemm promises of the order of its sums: rows do not depend on M, integers are exact,
// cancellation stays within the tolerance.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/skinny_gemm_cases.hpp"

namespace jitsmith {
namespace {

using namespace test;

Array first_rows(const Array& all, std::int64_t rows) {
  Array part = Array::zeros(all.type, {rows, all.shape[1]});
  std::memcpy(part.bytes.data(), all.bytes.data(), part.bytes.size());
  return part;
}

TypedPlan<SkinnyGemm> forced_plan(Engine& engine, const SkinnyGemm& request, const std::string& forced) {
  return {engine.plan({"skinny_gemm", params_of(request)}, nullptr, ForcedChoice::parse(forced)), request};
}

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm order");

TEST_CASE("In batch-invariant mode a row has the same bits whatever M it comes with") {
  Engine engine(host_options(kernel_cache()));
  const auto request = [](std::int64_t m) {
    return SkinnyGemm{.m = m, .n = 37, .k = 1032, .out = ElementType::f32, .batch_invariant = true};
  };
  const GemmData all = gemm_data(request(32), GemmValues::random, 11);
  const Array whole = run_gemm(engine.current_device(), engine.plan(request(32)), all).y;
  for (std::int64_t m = 1; m < 32; ++m) {
    CAPTURE(m);
    const GemmData part{first_rows(all.x, m), all.w, {}, {}};
    const Array y = run_gemm(engine.current_device(), engine.plan(request(m)), part).y;
    CHECK(y.bytes == first_rows(whole, m).bytes);
  }
}

TEST_CASE("Small integers are exact, so that any order agrees") {
  Engine engine(host_options(kernel_cache()));
  for (const char* forced : {"simt:threads=64,tile_m=2,tile_n=4,unroll=2,vector=true",
                             "simt:threads=128,tile_m=1,tile_n=2,unroll=4,vector=true"}) {
    CAPTURE(forced);
    const SkinnyGemm request{.m = 3,
                             .n = 10,
                             .k = 4096,
                             .out = ElementType::f32,
                             .bias = SkinnyGemmBiasType::f32,
                             .residual = true};
    const GemmData data = gemm_data(request, GemmValues::integers, 5);
    const Array y = run_gemm(engine.current_device(), forced_plan(engine, request, forced), data).y;
    for (std::int64_t m = 0; m < request.m; ++m)
      for (std::int64_t n = 0; n < request.n; ++n) {
        std::int64_t sum = static_cast<std::int64_t>(data.bias->data<float>()[n]) +
                           static_cast<std::int64_t>(data.residual->data<float>()[m * request.n + n]);
        for (std::int64_t k = 0; k < request.k; ++k)
          sum += static_cast<std::int64_t>(float_from_bf16(data.x.data<std::uint16_t>()[m * request.k + k])) *
                 static_cast<std::int64_t>(float_from_bf16(data.w.data<std::uint16_t>()[n * request.k + k]));
        CHECK(y.data<float>()[m * request.n + n] == static_cast<float>(sum));
      }
  }
}

TEST_CASE("A long sum that cancels stays within the tolerance, in the model's bits") {
  Engine engine(host_options(kernel_cache()));
  const SkinnyGemm request{.m = 1, .n = 3, .k = 65536, .out = ElementType::f32};
  GemmData data = gemm_data(request, GemmValues::random, 9);
  // Every second pair of terms nearly takes back the one before.
  for (std::int64_t n = 0; n < request.n; ++n)
    for (std::int64_t k = 8; k < request.k; k += 16)
      for (std::int64_t e = 0; e < 8; ++e) {
        data.x.data<std::uint16_t>()[k + e] = data.x.data<std::uint16_t>()[k + e - 8];
        data.w.data<std::uint16_t>()[n * request.k + k + e] =
            static_cast<std::uint16_t>(data.w.data<std::uint16_t>()[n * request.k + k + e - 8] ^ 0x8000);
      }
  set_element(data.x, 65535, 1.0f);
  const Array y =
      run_gemm(engine.current_device(),
               forced_plan(engine, request, "simt:threads=64,tile_m=2,tile_n=4,unroll=2,vector=true"), data)
          .y;
  CHECK(y.bytes == skinny_gemm_simt_model(data.operands(), 64, request.out).bytes);
  const CheckResult check = check_skinny_gemm(data.operands(), y);
  CHECK_MESSAGE(check.passed, check.summary);
}

TEST_CASE("K of zero gives bias and residual, with a positive zero before") {
  Engine engine(host_options(kernel_cache()));
  const SkinnyGemm request{.m = 2, .n = 3, .k = 0, .out = ElementType::f32, .bias = SkinnyGemmBiasType::f32};
  const auto plan = forced_plan(engine, request, "simt:threads=64,tile_m=2,tile_n=4,unroll=2,vector=true");
  const float bias[3] = {-0.0f, 2.5f, -1.0f};
  float y[6];
  plan.launch(nullptr, {.y = y, .bias = bias});
  const float expected[6] = {0.0f, 2.5f, -1.0f, 0.0f, 2.5f, -1.0f};
  CHECK(std::memcmp(y, expected, sizeof(y)) == 0);
  // Strides of operands without elements mean nothing.
  std::memset(y, 0xff, sizeof(y));
  plan.launch(nullptr, {.y = y, .bias = bias, .x_stride = 8, .w_stride = 16});
  CHECK(std::memcmp(y, expected, sizeof(y)) == 0);
}

TEST_SUITE_END();

}  // namespace jitsmith
