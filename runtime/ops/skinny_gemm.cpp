// The family's request schema, contract and op; its variants have files of their own.
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/ops/skinny_gemm_variants.hpp>

namespace jitsmith {
namespace {

constexpr std::int64_t k_max_m = 32;
constexpr std::int64_t k_max_extent = std::int64_t{1} << 30;  // block and chunk numbers stay within 31 bits

constexpr std::array k_formats{"bf16", "f16", "f32", "mxfp8"};
constexpr std::array k_bias_types{"none", "bf16", "f32"};

template <std::size_t Count>
std::vector<std::string> names(const std::array<const char*, Count>& all) {
  return {all.begin(), all.end()};
}

Schema request_schema() {
  return Schema()
      .integer("m", {.min = 0}, "rows of X and Y")
      .integer("n", {.min = 0, .max = k_max_extent}, "rows of W, columns of Y")
      .integer("k", {.min = 0, .max = k_max_extent}, "columns of X and W")
      .type("out", {ElementType::bf16, ElementType::f32}, "type of Y and residual", ElementType::bf16)
      .choice("bias", names(k_bias_types), "type of bias, if there is one", "none")
      .boolean("residual", "whether a residual is added", false)
      .boolean("aligned", "whether X, W, their row strides and K come in multiples of 16 bytes", true)
      .boolean("batch_invariant", "whether a row must have the same bits for every M", false)
      .boolean("programmatic", "whether launches may be programmatic (dependent launch)", false)
      .choice("x_format", names(k_formats), "format of X", "bf16")
      .choice("w_format", names(k_formats), "format of W", "bf16")
      .rule("aligned=true needs k to be a multiple of 8, but k is {k}; set aligned=false",
            [](const Params& p) { return !p.flag("aligned") || p.integer("k") % 8 == 0; });
}

Verdict contract(const Params& request, const DeviceFacts&) {
  const auto decline = [](std::string reason) { return Verdict{Verdict::decline, std::move(reason)}; };
  for (const char* operand : {"x_format", "w_format"})
    if (const std::string& format = request.choice(operand); format != "bf16")
      return decline(
          fmt::format("skinny_gemm serves bf16 operands, and {} is {}; convert it or keep your own kernel",
                      operand, format));
  const std::int64_t m = request.integer("m");
  if (m > k_max_m)
    return decline(fmt::format(
        "skinny_gemm serves m up to {}, and m is {}; split the rows or keep your own kernel", k_max_m, m));
  if (m == 0 || request.integer("n") == 0) return {Verdict::nothing_to_do, {}};
  return {};
}

template <std::size_t Count>
std::uint8_t index_in(const std::array<const char*, Count>& all, std::string_view name) {
  return static_cast<std::uint8_t>(std::ranges::find(all, name) - all.begin());
}

// A value that an enum was cast to may be none of its own: the schema then refuses this name.
template <std::size_t Count>
std::string_view nth(const std::array<const char*, Count>& all, std::size_t index) {
  return index < Count ? all[index] : "(no such value)";
}

}  // namespace

std::string_view choice_name(SkinnyGemmFormat format) {
  return nth(k_formats, static_cast<std::size_t>(format));
}
std::string_view choice_name(SkinnyGemmBiasType type) {
  return nth(k_bias_types, static_cast<std::size_t>(type));
}

SkinnyGemm skinny_gemm_from(const Params& request) {
  return {.m = request.integer("m"),
          .n = request.integer("n"),
          .k = request.integer("k"),
          .out = request.type("out"),
          .bias = SkinnyGemmBiasType{index_in(k_bias_types, request.choice("bias"))},
          .residual = request.flag("residual"),
          .aligned = request.flag("aligned"),
          .batch_invariant = request.flag("batch_invariant"),
          .programmatic = request.flag("programmatic"),
          .x_format = SkinnyGemmFormat{index_in(k_formats, request.choice("x_format"))},
          .w_format = SkinnyGemmFormat{index_in(k_formats, request.choice("w_format"))}};
}

Op skinny_gemm_op(const TemplateFiles& files) {
  Op op;
  op.name = SkinnyGemm::k_op;
  op.summary =
      "Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N]), M up to 32; bf16 operands, fp32 sums, Y "
      "bf16 or fp32";
  op.request = request_schema();
  op.variants = {skinny_gemm_simt(files), skinny_gemm_mma(files)};
  op.generic_variant = "simt";
  op.generic_params = skinny_gemm_generic_params;
  op.contract = contract;
  op.arrays = skinny_gemm_arrays();
  return op;
}

}  // namespace jitsmith
