#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/runtime/bf16.hpp>

namespace jitsmith {
namespace {

constexpr std::int64_t k_chunk = 8;  // elements of K that a thread takes at once
constexpr std::int64_t k_warp = 32;

float element(const Array& array, std::int64_t index) {
  return array.type == ElementType::bf16 ? float_from_bf16(array.data<std::uint16_t>()[index])
                                         : array.data<float>()[index];
}

// A NaN that arithmetic makes is 0x7FFFFFFF on the GPU.
float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(0x7fffffffu);
}

struct Exact {
  double value;      // r
  double magnitude;  // a
};

Exact exact_element(const SkinnyGemmOperands& o, std::int64_t m, std::int64_t n) {
  const std::int64_t k_extent = o.x.shape[1], n_extent = o.w.shape[0];
  const std::uint16_t* x = o.x.data<std::uint16_t>() + m * k_extent;
  const std::uint16_t* w = o.w.data<std::uint16_t>() + n * k_extent;
  Exact exact{0, 0};
  const auto add = [&exact](double term) {
    exact.value += term;
    exact.magnitude += std::abs(term);
  };
  for (std::int64_t k = 0; k < k_extent; ++k)
    add(double{float_from_bf16(x[k])} * double{float_from_bf16(w[k])});
  if (o.bias != nullptr) add(element(*o.bias, n));
  if (o.residual != nullptr) add(element(*o.residual, m * n_extent + n));
  return exact;
}

// The distance between neighbours of `value` among the bf16 numbers.
double bf16_unit(double value) {
  if (value == 0) return std::ldexp(1.0, -133);
  return std::ldexp(1.0, std::max(std::ilogb(value), -126) - 7);
}

// A bf16 number's place in the order of all of them.
int bf16_rank(std::uint16_t bits) {
  return (bits & 0x8000) != 0 ? -(bits & 0x7fff) : bits;
}

// The error as a share of what is allowed: at most 1 for a right result.
double error_share(const Exact& exact, const Array& y, std::int64_t index) {
  const float got = element(y, index);
  if (std::isnan(exact.value) || std::isnan(got))
    return std::isnan(exact.value) && std::isnan(got) ? 0 : HUGE_VAL;
  const double slack = std::ldexp(exact.magnitude, -20);
  if (std::isinf(got) || std::isinf(exact.value)) {
    const double limit = std::numeric_limits<float>::max();
    const bool may_overflow =
        std::isinf(exact.value) || std::abs(exact.value) + slack + bf16_unit(limit) > limit;
    return may_overflow && std::isinf(got) && std::signbit(got) == std::signbit(exact.value) ? 0 : HUGE_VAL;
  }
  const double error = std::abs(double{got} - exact.value);
  if (y.type == ElementType::f32) {
    // The result itself is rounded once, which a tiny sum of tiny terms may show.
    return error / (slack + std::numeric_limits<float>::denorm_min());
  }
  const std::uint16_t nearest = bf16_from_float(static_cast<float>(exact.value));
  if (std::abs(bf16_rank(y.data<std::uint16_t>()[index]) - bf16_rank(nearest)) <= 1) return 0;
  return error / (slack + bf16_unit(exact.value) / 2);
}

float model_element(const SkinnyGemmOperands& o, std::int64_t m, std::int64_t n, std::int64_t threads) {
  const std::int64_t k_extent = o.x.shape[1], n_extent = o.w.shape[0];
  const std::uint16_t* x = o.x.data<std::uint16_t>() + m * k_extent;
  const std::uint16_t* w = o.w.data<std::uint16_t>() + n * k_extent;
  std::vector<float> sums(static_cast<std::size_t>(threads), 0.0f);
  for (std::int64_t thread = 0; thread < threads; ++thread)
    for (std::int64_t first = thread * k_chunk; first < k_extent; first += threads * k_chunk)
      for (std::int64_t k = first; k < std::min(first + k_chunk, k_extent); ++k) {
        float& sum = sums[static_cast<std::size_t>(thread)];
        sum = canonical(std::fma(float_from_bf16(x[k]), float_from_bf16(w[k]), sum));
      }
  for (std::int64_t distance : {16, 8, 4, 2, 1}) {
    const std::vector<float> before = sums;
    for (std::int64_t thread = 0; thread < threads; ++thread)
      sums[static_cast<std::size_t>(thread)] = canonical(before[static_cast<std::size_t>(thread)] +
                                                         before[static_cast<std::size_t>(thread ^ distance)]);
  }
  float y = sums[0];
  for (std::int64_t warp = k_warp; warp < threads; warp += k_warp)
    y = canonical(y + sums[static_cast<std::size_t>(warp)]);
  if (o.bias != nullptr) y = canonical(y + element(*o.bias, n));
  if (o.residual != nullptr) y = canonical(y + element(*o.residual, m * n_extent + n));
  return y;
}

}  // namespace

CheckResult check_skinny_gemm(const SkinnyGemmOperands& operands, const Array& y) {
  const std::int64_t m_extent = operands.x.shape[0], n_extent = operands.w.shape[0];
  double worst = 0;
  for (std::int64_t m = 0; m < m_extent; ++m)
    for (std::int64_t n = 0; n < n_extent; ++n) {
      const Exact exact = exact_element(operands, m, n);
      const double share = error_share(exact, y, m * n_extent + n);
      if (!(share <= 1))
        return {false, fmt::format("y[{}, {}] is {} and should be {}: {:.3g} times the tolerance", m, n,
                                   element(y, m * n_extent + n), exact.value, share)};
      worst = std::max(worst, share);
    }
  return {true, fmt::format("{} elements within {:.2g} of the tolerance", m_extent * n_extent, worst)};
}

Array skinny_gemm_simt_model(const SkinnyGemmOperands& operands, std::int64_t threads, ElementType out) {
  const std::int64_t m_extent = operands.x.shape[0], n_extent = operands.w.shape[0];
  Array y = Array::zeros(out, {m_extent, n_extent});
  for (std::int64_t m = 0; m < m_extent; ++m)
    for (std::int64_t n = 0; n < n_extent; ++n) {
      const float value = model_element(operands, m, n, threads);
      if (out == ElementType::bf16)
        y.data<std::uint16_t>()[m * n_extent + n] = bf16_from_float(value);
      else
        y.data<float>()[m * n_extent + n] = value;
    }
  return y;
}

}  // namespace jitsmith
