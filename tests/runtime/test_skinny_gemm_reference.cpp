// The references must reject wrong results, or every test that uses them is worth nothing.
#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include "support/message_of.hpp"
#include "support/skinny_gemm_cases.hpp"

namespace jitsmith {
namespace {

using namespace test;

constexpr SkinnyGemm k_bf16{.m = 2, .n = 3, .k = 64, .bias = SkinnyGemmBiasType::f32, .residual = true};
constexpr SkinnyGemm k_f32{
    .m = 2, .n = 3, .k = 64, .out = ElementType::f32, .bias = SkinnyGemmBiasType::bf16, .residual = true};

struct Right {
  explicit Right(const SkinnyGemm& request)
      : data(gemm_data(request, GemmValues::random, 21)),
        y(skinny_gemm_simt_model(data.operands(), 128, request.out)) {}
  bool passes() const { return check_skinny_gemm(data.operands(), y).passed; }
  GemmData data;
  Array y;
};

// One output, k = 1: x * w.
CheckResult check_product(float x, float w, float y, ElementType out = ElementType::f32) {
  Array xs = Array::zeros(ElementType::bf16, {1, 1}), ws = xs, ys = Array::zeros(out, {1, 1});
  set_element(xs, 0, x);
  set_element(ws, 0, w);
  set_element(ys, 0, y);
  return check_skinny_gemm({xs, ws}, ys);
}

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm reference");

TEST_CASE("The model passes the check") {
  CHECK(Right(k_bf16).passes());
  CHECK(Right(k_f32).passes());
}

TEST_CASE("A bf16 result may be a neighbour of the right one, and no further") {
  // 1.5 * 1.5 = 2.25 exactly, bits 0x4010.
  CHECK(check_product(1.5f, 1.5f, float_from_bf16(0x4010), ElementType::bf16).passed);
  CHECK(check_product(1.5f, 1.5f, float_from_bf16(0x4011), ElementType::bf16).passed);
  CHECK(check_product(1.5f, 1.5f, float_from_bf16(0x400f), ElementType::bf16).passed);
  CHECK_FALSE(check_product(1.5f, 1.5f, float_from_bf16(0x4012), ElementType::bf16).passed);
  CHECK_FALSE(check_product(1.5f, 1.5f, float_from_bf16(0x400e), ElementType::bf16).passed);
}

TEST_CASE("An fp32 result keeps to 2^-20 of the magnitudes") {
  CHECK(check_product(1.0f, 1.0f, 1.0f + 0x1p-21f).passed);
  CHECK_FALSE(check_product(1.0f, 1.0f, 1.0f + 0x1.8p-20f).passed);
  CHECK_FALSE(check_product(1.0f, 1.0f, 1.0f - 0x1.8p-20f).passed);
}

TEST_CASE("A wrong element is found and named, wherever it is") {
  for (std::int64_t i = 0; i < 6; ++i) {
    Right right(k_f32);
    right.y.data<float>()[i] += 0.01f;
    const CheckResult check = check_skinny_gemm(right.data.operands(), right.y);
    CHECK_FALSE(check.passed);
    CHECK(contains(check.summary, "y[" + std::to_string(i / 3) + ", " + std::to_string(i % 3) + "] is "));
  }
}

TEST_CASE("Swapped rows, a lost bias, a lost residual and a missing last k are found") {
  Right swapped(k_f32);
  std::swap(swapped.y.data<float>()[0], swapped.y.data<float>()[3]);
  CHECK_FALSE(swapped.passes());

  const Right right(k_f32);
  const auto passes = [&right](const SkinnyGemmOperands& computed_from) {
    const Array y = skinny_gemm_simt_model(computed_from, 128, ElementType::f32);
    return check_skinny_gemm(right.data.operands(), y).passed;
  };
  const auto& [x, w, bias, residual] = right.data;
  CHECK(passes({x, w, &*bias, &*residual}));
  CHECK_FALSE(passes({x, w, nullptr, &*residual}));
  CHECK_FALSE(passes({x, w, &*bias, nullptr}));
  Array shorter = right.data.x;
  for (std::int64_t m = 0; m < 2; ++m) shorter.data<std::uint16_t>()[m * 64 + 63] = 0;
  CHECK_FALSE(passes({shorter, w, &*bias, &*residual}));
}

TEST_CASE("Poison that was never overwritten is found") {
  for (const int poison : {0x00, 0xee, 0xff}) {
    Right bf16(k_bf16), f32(k_f32);
    std::memset(bf16.y.bytes.data() + 4, poison, 2);
    std::memset(f32.y.bytes.data() + 8, poison, 4);
    CHECK_FALSE(bf16.passes());
    CHECK_FALSE(f32.passes());
  }
}

TEST_CASE("NaN stands for NaN alone, an infinity for its own sign") {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  CHECK(check_product(nan, 1, nan).passed);
  CHECK_FALSE(check_product(nan, 1, 0).passed);
  CHECK_FALSE(check_product(nan, 1, inf).passed);
  CHECK_FALSE(check_product(2, 1, nan).passed);
  CHECK_FALSE(check_product(2, 1, nan, ElementType::bf16).passed);
  CHECK(check_product(inf, 1, inf).passed);
  CHECK(check_product(inf, -1, -inf).passed);
  CHECK_FALSE(check_product(inf, 1, -inf).passed);
  CHECK_FALSE(check_product(inf, 1, 3e38f).passed);
  CHECK_FALSE(check_product(2, 1, inf).passed);
  CHECK(check_product(inf, 0, nan).passed);
  CHECK(check_product(0x1p127f, 2, inf).passed);  // beyond fp32
  CHECK_FALSE(check_product(0x1p126f, 1, inf).passed);
}

TEST_CASE("The model's order depends on threads, and on nothing of the tile") {
  const GemmData data = gemm_data({.m = 4, .n = 8, .k = 4096}, GemmValues::random, 2);
  CHECK(skinny_gemm_simt_model(data.operands(), 64, ElementType::f32).bytes !=
        skinny_gemm_simt_model(data.operands(), 128, ElementType::f32).bytes);
}

TEST_CASE("The model's order is the documented one") {
  // 2^24 stays when 1 is added to it, so the place where each 1 meets it shows. Chunks of 8: thread 0 has k
  // 0..7.
  const auto sum = [](std::vector<float> terms, std::int64_t threads) {
    const auto k = static_cast<std::int64_t>(terms.size());
    Array x = Array::zeros(ElementType::bf16, {1, k}), w = x;
    for (std::int64_t i = 0; i < k; ++i) {
      set_element(x, i, terms[static_cast<std::size_t>(i)]);
      set_element(w, i, 1);
    }
    return skinny_gemm_simt_model({x, w}, threads, ElementType::f32).data<float>()[0];
  };
  std::vector<float> terms(24, 0);
  terms[0] = 0x1p24f;
  terms[1] = terms[2] = 1;
  CHECK(sum(terms, 32) == 0x1p24f);  // one thread: each 1 is lost by itself
  terms[1] = terms[2] = 0;
  terms[8] = terms[9] = 1;
  CHECK(sum(terms, 32) == 0x1p24f + 2);  // another thread: 1 + 1 come together
  terms[9] = 0;
  terms[16] = 1;
  CHECK(sum(terms, 32) == 0x1p24f);  // lanes 1 and 2 meet lane 0 one after the other
}

TEST_SUITE_END();

}  // namespace jitsmith
