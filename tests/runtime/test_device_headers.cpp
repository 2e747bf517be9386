// The device headers on the host target, against plain C++.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/host_kernel.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

constexpr const char* k_kernel = R"(
#include "device/bf16.cuh"
#include "device/launch.cuh"
#include "device/math.cuh"
#include "device/memory.cuh"
#include "device/warp.cuh"

namespace jitsmith {

enum class Probe : int { widen, narrow, arithmetic, copy16, misaligned16, elements, shuffle4, shuffle8, votes };

static_assert(ceil_div(0, 4) == 0 && ceil_div(1, 4) == 1 && ceil_div(4, 4) == 1 && ceil_div(5, 4) == 2);
static_assert(min(2, 1) == 1 && max(2, 1) == 2 && min(1, 2) == 1 && max(1, 2) == 2);

template <class T>
JITSMITH_DEVICE void shuffles(const T* in, T* out, uint32 i, uint32 by, uint32 mask) {
  out[4 * i] = shuffle(in[i], by + lane_index(), mask);
  out[4 * i + 1] = shuffle_xor(in[i], by, mask);
  out[4 * i + 2] = shuffle_down(in[i], by, mask);
  out[4 * i + 3] = shuffle_up(in[i], by, mask);
}

JITSMITH_KERNEL void probe(Probe which, const void* in, void* out, uint32 by, uint32 mask) {
  const uint32 i = block_index_x() * block_extent_x() + thread_index_x();
  const uint32 half = (mask >> lane_index() & 1u) != 0 ? mask : ~mask;  // both halves of a warp, each with its mask
  const float* floats = static_cast<const float*>(in);
  const uint32* words = static_cast<const uint32*>(in);
  float* results = static_cast<float*>(out);
  switch (which) {
    case Probe::widen:
      results[i] = to_float(from_float<bf16>(to_float(bf16{static_cast<uint16>(i)})));
      results[65536 + i] = to_float(bf16{static_cast<uint16>(i)});
      break;
    case Probe::narrow:
      if (i < by) static_cast<bf16*>(out)[i] = bf16_from_float(float_from_bits(words[i]));
      break;
    case Probe::arithmetic: {
      const float a = floats[3 * i], b = floats[3 * i + 1], c = floats[3 * i + 2];
      results[4 * i] = fma_rn(a, b, c);
      results[4 * i + 1] = add_rn(a, b);
      results[4 * i + 2] = mul_rn(a, b);
      results[4 * i + 3] = div_rn(a, b);
      break;
    }
    case Probe::copy16:
      store16(static_cast<uint4x*>(out) + 3 * i, load16(static_cast<const uint4x*>(in) + i));
      store16(static_cast<uint4x*>(out) + 3 * i + 1, load16_streaming(static_cast<const uint4x*>(in) + i));
      store16(static_cast<uint4x*>(out) + 3 * i + 2, load16_shared(static_cast<const uint4x*>(in) + i));
      break;
    case Probe::misaligned16:
      if (i == by && mask == 0) load16(static_cast<const char*>(in) + 8);
      if (i == by && mask == 1) load16_streaming(static_cast<const char*>(in) + 4);
      if (i == by && mask == 2) load16_shared(static_cast<const char*>(in) + 2);
      if (i == by && mask == 3) store16(static_cast<char*>(out) + 1, uint4x{});
      break;
    case Probe::elements:
      store(results + i, load(floats + i));
      break;
    case Probe::shuffle4:
      shuffles(floats, results, i, by, half);
      break;
    case Probe::shuffle8:
      shuffles(static_cast<const int64*>(in), static_cast<int64*>(out), i, by, half);
      break;
    case Probe::votes: {
      const bool bit = (words[i] & 1u) != 0;
      static_cast<uint32*>(out)[4 * i] = ballot(bit, half);
      static_cast<uint32*>(out)[4 * i + 1] = vote_any(bit, half);
      static_cast<uint32*>(out)[4 * i + 2] = vote_all(bit, half);
      sync_warp(half);
      static_cast<uint32*>(out)[4 * i + 3] = bits_of(from_float<float>(to_float(bit_cast<float>(words[i]))));
      break;
    }
  }
}

}
)";

enum class Probe : int {
  widen,
  narrow,
  arithmetic,
  copy16,
  misaligned16,
  elements,
  shuffle4,
  shuffle8,
  votes
};

constexpr std::uint32_t k_all = 0xffffffffu;
constexpr std::uint32_t k_nan_bits = 0x7fffffffu;

const LoadedKernel& kernel() {
  static const auto loaded = load_host_kernel(compile_for_host(k_kernel, "jitsmith::probe"), {.seed = 5});
  return *loaded;
}

void run(Probe which, std::uint32_t blocks, std::uint32_t threads, const void* in, void* out,
         std::uint32_t by = 0, std::uint32_t mask = k_all) {
  launch(kernel(), {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, which, in, out, by, mask);
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// A bf16's value, with the binade above the largest standing for Inf, as rounding sees it.
double magnitude(std::uint32_t bf16) {
  return bf16 == 0x7f80 ? std::ldexp(1.0, 128) : std::bit_cast<float>(bf16 << 16);
}

// By distance to the two neighbours, not by bit arithmetic.
std::uint16_t nearest_bf16(std::uint32_t float_bits) {
  const auto value = std::bit_cast<float>(float_bits);
  if (std::isnan(value)) return 0x7fff;
  const std::uint32_t sign = float_bits >> 31 << 15;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7f80);
  const std::uint32_t below = float_bits << 1 >> 17, above = below + 1;
  const double x = std::fabs(static_cast<double>(value));
  const double to_below = x - magnitude(below), to_above = magnitude(above) - x;
  const bool up = to_above < to_below || (to_above == to_below && above % 2 == 0);
  return static_cast<std::uint16_t>(sign | (up ? above : below));
}

// What lane `lane` of `values` (one warp) gets from lane `source`, when both are in one half of `mask`.
template <class T>
T taken(const std::vector<T>& values, std::uint32_t warp, std::uint32_t lane, std::uint32_t source,
        std::uint32_t mask) {
  const bool together = (mask >> lane & 1) == (mask >> source & 1);
  T poison;
  std::memset(&poison, 0xff, sizeof poison);
  return together ? values[warp * 32 + source] : poison;
}

template <class T>
void check_shuffles(Probe which, const std::vector<T>& in) {
  const auto count = static_cast<std::uint32_t>(in.size());
  for (const std::uint32_t mask : {k_all, 0x0000ffffu, 0x55555555u, 0x80000001u, 0x12345678u})
    for (const std::uint32_t by : {0u, 1u, 5u, 16u, 31u}) {
      std::vector<T> out(4 * in.size());
      run(which, 1, count, in.data(), out.data(), by, mask);
      std::size_t wrong = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t warp = i / 32, lane = i % 32;
        const T expected[4] = {
            taken(in, warp, lane, (by + lane) % 32, mask),
            taken(in, warp, lane, lane ^ by, mask),
            lane + by < 32 ? taken(in, warp, lane, lane + by, mask) : in[i],
            lane >= by ? taken(in, warp, lane, lane - by, mask) : in[i],
        };
        wrong += std::memcmp(expected, &out[4 * i], sizeof expected) != 0;
      }
      CAPTURE(mask);
      CAPTURE(by);
      CHECK(wrong == 0);
    }
}

}  // namespace

TEST_SUITE_BEGIN("Device headers");

TEST_CASE("All 65536 bf16 patterns become the float with those bits on top, and come back") {
  std::vector<float> out(2 * 65536);
  run(Probe::widen, 64, 1024, nullptr, out.data());
  std::size_t wrong_float = 0, wrong_back = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const bool nan = (i & 0x7fff) > 0x7f80;
    wrong_float += bits(out[65536 + i]) != i << 16;
    wrong_back += bits(out[i]) != (nan ? 0x7fffu : i) << 16;
  }
  CHECK(wrong_float == 0);
  CHECK(wrong_back == 0);
}

TEST_CASE("bf16 rounds to nearest, ties to even, up to Inf; each NaN becomes 0x7FFF") {
  std::vector<std::uint32_t> in;
  for (std::uint32_t upper = 0; upper < 65536;
       upper += 7)  // each exponent, both signs; denormals, Inf and NaN too
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      in.push_back(upper << 16 | lower);
  for (const std::uint32_t special :
       {0x7f7fffffu, 0x7f7f8000u, 0x7f7f7fffu, 0xff7f8000u, 0x7f800000u, 0xff800000u, 0x7f800001u,
        0xffffffffu, 0x00008000u, 0x00018000u, 0x007fffffu})
    in.push_back(special);
  std::vector<std::uint16_t> out(in.size());
  const auto count = static_cast<std::uint32_t>(in.size());
  run(Probe::narrow, (count + 255) / 256, 256, in.data(), out.data(), count);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (out[i] == nearest_bf16(in[i])) continue;
    CAPTURE(in[i]);
    CHECK(out[i] == nearest_bf16(in[i]));
  }
  CHECK(nearest_bf16(0x3f808000u) == 0x3f80);  // the reference itself: a tie goes to the even neighbour
  CHECK(nearest_bf16(0x3f818000u) == 0x3f82);
  CHECK(nearest_bf16(0x7f7f8000u) == 0x7f80);
}

TEST_CASE("Arithmetic is IEEE, fused only where it says so, and a NaN is the GPU's") {
  std::vector<float> in;
  std::mt19937 random(1);
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0xffc12345u);
  for (int i = 0; i < 3 * 1000; ++i) in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const float x : {1.0f + 0x1p-12f,
                        1.0f + 0x1p-12f,
                        -1.0f,
                        inf,
                        -inf,
                        1.0f,
                        nan,
                        1.0f,
                        2.0f,
                        0.0f,
                        0.0f,
                        nan,
                        0x1p-149f,
                        0.5f,
                        1.0f,
                        1.0f,
                        3.0f,
                        0.0f,
                        inf,
                        0.0f,
                        1.0f,
                        0x1p-126f,
                        2.0f,
                        0x1p-149f})
    in.push_back(x);
  while (in.size() % (3 * 256) != 0) in.push_back(1.0f);
  const auto count = static_cast<std::uint32_t>(in.size() / 3);
  std::vector<float> out(4 * count);
  run(Probe::arithmetic, count / 256, 256, in.data(), out.data());
  const auto expect = [](float value) { return std::isnan(value) ? k_nan_bits : bits(value); };
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    // In double, the sum, product and quotient of two floats round to float as if done at once.
    wrong += bits(out[4 * i]) != expect(std::fma(a, b, c));
    wrong += bits(out[4 * i + 1]) != expect(static_cast<float>(static_cast<double>(a) + b));
    wrong += bits(out[4 * i + 2]) != expect(static_cast<float>(static_cast<double>(a) * b));
    wrong += bits(out[4 * i + 3]) != expect(a / b);
  }
  CHECK(wrong == 0);
}

TEST_CASE("16-byte accesses copy their bytes") {
  struct alignas(16) Bytes16 {
    std::uint64_t half[2];
    bool operator==(const Bytes16&) const = default;
  };
  std::vector<Bytes16> in(64), out(3 * 64);
  for (std::uint64_t i = 0; i < 64; ++i) in[i] = {{i, ~i}};
  run(Probe::copy16, 2, 32, in.data(), out.data());
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i] == in[i / 3]);
}

TEST_CASE("A misaligned 16-byte access is an error that names its line and thread") {
  alignas(16) char buffer[64] = {};
  for (std::uint32_t access = 0; access < 4; ++access)
    CHECK_THROWS_WITH_AS(
        run(Probe::misaligned16, 1, 64, buffer, buffer, 40, access),
        doctest::Contains("thread (40, 0, 0) accesses 16 bytes at an address that is not a multiple of 16"),
        HostKernelError);
  CHECK_THROWS_WITH_AS(run(Probe::misaligned16, 1, 64, buffer, buffer, 40, 0),
                       doctest::Contains(line_of(k_kernel, "mask == 0) load16").c_str()), HostKernelError);
  CHECK_NOTHROW(run(Probe::misaligned16, 1, 64, buffer, buffer, 40, 4));
}

TEST_CASE("Elements are loaded and stored") {
  std::vector<float> in(64), out(64);
  for (std::size_t i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  run(Probe::elements, 1, 64, in.data(), out.data());
  CHECK(in == out);
}

TEST_CASE("Shuffles of 4 and 8 bytes, for whole and partial masks") {
  std::mt19937_64 random(3);
  std::vector<float> floats(96);
  for (float& x : floats) x = static_cast<float>(random() % 1000);
  check_shuffles(Probe::shuffle4, floats);
  std::vector<std::int64_t> integers(64);
  for (std::int64_t& x : integers) x = static_cast<std::int64_t>(random());
  check_shuffles(Probe::shuffle8, integers);
}

TEST_CASE("Votes count the lanes of their mask and no other") {
  std::mt19937 random(4);
  for (const std::uint32_t mask : {k_all, 0x0000ffffu, 0xaaaaaaaau, 1u, 0x7fffffffu})
    for (const std::uint32_t kind : {0u, 1u, 2u, 3u, 4u}) {  // none, all, random, all but one, only one
      std::vector<std::uint32_t> in(64), out(4 * 64);
      for (std::size_t i = 0; i < 64; ++i)
        in[i] = kind == 2   ? static_cast<std::uint32_t>(random())
                : kind == 3 ? i % 32 != 7
                : kind == 4 ? i % 32 == 9
                            : kind;
      run(Probe::votes, 1, 64, in.data(), out.data(), 0, mask);
      for (std::uint32_t i = 0; i < 64; ++i) {
        const std::uint32_t half = (mask >> (i % 32) & 1) != 0 ? mask : ~mask;
        std::uint32_t expected = 0;
        for (std::uint32_t lane = 0; lane < 32; ++lane)
          expected |= (in[i / 32 * 32 + lane] & half >> lane & 1) << lane;
        CAPTURE(mask);
        CAPTURE(kind);
        CAPTURE(i);
        REQUIRE(out[4 * i] == expected);
        REQUIRE(out[4 * i + 1] == (expected != 0));
        REQUIRE(out[4 * i + 2] == (expected == half));
        REQUIRE(out[4 * i + 3] == in[i]);
      }
    }
}
