// The tensor-core product of the device headers on the host target, against plain C++.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include <jitsmith/runtime/bf16.hpp>

#include "support/host_kernel.hpp"
#include "support/message_of.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

// A[16][16] and C[16][8] row by row, B[8][16] column by column, as the fragments of one warp; `lanes` take
// part.
constexpr const char* k_kernel = R"(
#include "device/launch.cuh"
#include "device/mma.cuh"

namespace jitsmith {

JITSMITH_KERNEL void probe(const uint16* a, const uint16* b, const float* c, float* d, uint32 lanes) {
  const uint32 lane = lane_index(), g = lane / 4, t = lane % 4;
  const auto pair = [](const uint16* row, uint32 k) { return static_cast<uint32>(row[k + 1]) << 16 | row[k]; };
  const uint32 a_words[4] = {pair(a + 16 * g, 2 * t), pair(a + 16 * (g + 8), 2 * t), pair(a + 16 * g, 2 * t + 8),
                             pair(a + 16 * (g + 8), 2 * t + 8)};
  const uint32 b_words[2] = {pair(b + 16 * g, 2 * t), pair(b + 16 * g, 2 * t + 8)};
  float sums[4];
  for (uint32 i = 0; i < 4; ++i) sums[i] = c[8 * (g + i / 2 * 8) + 2 * t + i % 2];
  if (lane < lanes) mma_16x8x16(sums, a_words, b_words);
  for (uint32 i = 0; i < 4; ++i) d[8 * (g + i / 2 * 8) + 2 * t + i % 2] = sums[i];
}

}  // namespace jitsmith
)";

struct Matrices {
  std::array<std::uint16_t, 16 * 16> a{};
  std::array<std::uint16_t, 8 * 16> b{};
  std::array<float, 16 * 8> c{};

  template <class Draw>
  explicit Matrices(Draw draw) {
    for (auto& element : a) element = bf16_from_float(draw());
    for (auto& element : b) element = bf16_from_float(draw());
    for (auto& element : c) element = draw();
  }
};

std::array<float, 16 * 8> product(const Matrices& m, std::uint32_t lanes = 32) {
  static const auto kernel = load_host_kernel(compile_for_host(k_kernel, "jitsmith::probe"), {});
  std::array<float, 16 * 8> d;
  d.fill(std::numeric_limits<float>::quiet_NaN());
  launch(*kernel, {.grid = {1, 1, 1}, .block = {32, 1, 1}}, m.a.data(), m.b.data(), m.c.data(), d.data(),
         lanes);
  return d;
}

// Entry (i, j) in double, and the sum of the magnitudes of what is added.
std::pair<double, double> entry(const Matrices& m, std::size_t i, std::size_t j) {
  double sum = m.c[8 * i + j], magnitude = std::abs(sum);
  for (std::size_t k = 0; k < 16; ++k) {
    const double term = double{float_from_bf16(m.a[16 * i + k])} * double{float_from_bf16(m.b[16 * j + k])};
    sum += term;
    magnitude += std::abs(term);
  }
  return {sum, magnitude};
}

}  // namespace

TEST_SUITE_BEGIN("device mma");

TEST_CASE("Each entry is its own row times its own column, exactly for integers") {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const Matrices m([&] { return static_cast<float>(static_cast<int>(random() % 255) - 127); });
    const auto d = product(m);
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) CHECK(double{d[8 * i + j]} == entry(m, i, j).first);
  }
}

TEST_CASE("Other sums are rounded once") {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  const Matrices m([&] { return std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 20); });
  const auto d = product(m);
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      const auto [sum, magnitude] = entry(m, i, j);
      CHECK(std::abs(double{d[8 * i + j]} - sum) <= std::abs(sum) * 0x1p-24 + magnitude * 0x1p-48);
    }
}

TEST_CASE("A NaN stays in its row, an infinity has its sign, and an overflow is one") {
  const float infinity = std::numeric_limits<float>::infinity();
  Matrices m([] { return 1.0F; });
  m.a[16 * 3 + 5] = 0x7fc0;  // NaN
  m.a[16 * 9 + 2] = bf16_from_float(-infinity);
  for (std::size_t k = 0; k < 16; ++k) m.a[16 * 12 + k] = 0x7f7f;  // the largest
  const auto d = product(m);
  for (std::size_t j = 0; j < 8; ++j) {
    CHECK(std::bit_cast<std::uint32_t>(d[8 * 3 + j]) == 0x7fffffffU);
    CHECK(d[8 * 9 + j] == -infinity);
    CHECK(d[8 * 12 + j] == infinity);
    CHECK(d[8 * 0 + j] == 17);
  }
}

TEST_CASE("A warp of which a lane stays away is caught") {
  const Matrices m([] { return 1.0F; });
  const std::string message = message_of<HostKernelError>([&] { product(m, 31); });
  CHECK(contains(message, "no thread can go on: of 32 threads, 1 exited, 31 waiting at the warp operation"));
}

TEST_SUITE_END();
