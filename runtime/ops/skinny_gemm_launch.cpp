// Checks the arguments of a launch and hands them to the kernel. On the hot path: no allocation unless it
// throws.
#include <cstdint>

#include <fmt/format.h>

#include <jitsmith/templates/skinny_gemm/args.h>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

namespace jitsmith {
namespace {

// A matrix, or a vector as one row, in memory.
struct Operand {
  const char* name;
  const void* data;
  std::int64_t rows, columns, stride, element_bytes;  // stride in elements

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(data); }
  std::uintptr_t end() const {
    return begin() + static_cast<std::uintptr_t>(((rows - 1) * stride + columns) * element_bytes);
  }
  bool empty() const { return rows == 0 || columns == 0; }
};

void check_operand(const Operand& operand, std::uintptr_t alignment) {
  if (operand.empty()) return;
  if (operand.data == nullptr)
    throw InvalidRequest(fmt::format("skinny_gemm: {} is null; pass its address", operand.name));
  if (operand.begin() % alignment != 0)
    throw InvalidRequest(fmt::format(
        "skinny_gemm: {}={} is not aligned to {} bytes; {}", operand.name, operand.data, alignment,
        alignment == 16 ? "align it, or plan with aligned=false" : "align it to its elements"));
  if (operand.rows > 1 && operand.stride < operand.columns)
    throw InvalidRequest(
        fmt::format("skinny_gemm: {}_stride={} makes rows of {} elements overlap; give at least {}",
                    operand.name, operand.stride, operand.columns, operand.columns));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(operand.stride, operand.rows * operand.element_bytes, &bytes) ||
      operand.begin() > UINTPTR_MAX - static_cast<std::uintptr_t>(bytes))
    throw InvalidRequest(
        fmt::format("skinny_gemm: {}_stride={} reaches past the address space; give a smaller stride",
                    operand.name, operand.stride));
  if (alignment == 16 && operand.rows > 1 && operand.stride * operand.element_bytes % 16 != 0)
    throw InvalidRequest(
        fmt::format("skinny_gemm: {}_stride={} is not a multiple of {} elements (16 bytes); pad the rows, or "
                    "plan with aligned=false",
                    operand.name, operand.stride, 16 / operand.element_bytes));
}

// Whether the rows of two operands lie in the gaps of each other: columns of one wider matrix.
bool interleaved(const Operand& a, const Operand& b) {
  const std::int64_t pitch = a.stride * a.element_bytes;
  if (pitch != b.stride * b.element_bytes || a.rows == 1 || b.rows == 1) return false;
  const auto unsigned_pitch = static_cast<std::uintptr_t>(pitch);
  const std::uintptr_t shift = (b.begin() - a.begin() % unsigned_pitch) % unsigned_pitch;
  return shift >= static_cast<std::uintptr_t>(a.columns * a.element_bytes) &&
         shift + static_cast<std::uintptr_t>(b.columns * b.element_bytes) <= unsigned_pitch;
}

void check_apart(const Operand& output, const Operand& input) {
  if (!input.empty() && output.begin() < input.end() && input.begin() < output.end() &&
      !interleaved(output, input))
    throw InvalidRequest(fmt::format("skinny_gemm: y={} overlaps {}={}; give them memory of their own",
                                     output.data, input.name, input.data));
}

}  // namespace

void SkinnyGemm::run(const Plan& plan, Stream stream, const SkinnyGemm& r, const Args& a) {
  // A single row has no stride, and 0 means dense.
  const auto stride_or = [&r](std::int64_t stride, std::int64_t columns, bool rows_of_w = false) {
    return stride == 0 || (rows_of_w ? r.n : r.m) == 1 ? columns : stride;
  };
  const std::int64_t out_bytes = static_cast<std::int64_t>(size_of(r.out));
  const std::int64_t bias_bytes = r.bias == SkinnyGemmBiasType::f32 ? 4 : 2;
  const Operand x{"x", a.x, r.m, r.k, stride_or(a.x_stride, r.k), 2};
  const Operand w{"w", a.w, r.n, r.k, stride_or(a.w_stride, r.k, true), 2};
  const Operand y{"y", a.y, r.m, r.n, stride_or(a.y_stride, r.n), out_bytes};
  const Operand bias{"bias", a.bias, 1, r.bias == SkinnyGemmBiasType::none ? 0 : r.n, r.n, bias_bytes};
  const Operand residual{"residual", a.residual, r.m, r.residual ? r.n : 0, stride_or(a.residual_stride, r.n),
                         out_bytes};

  check_operand(x, r.aligned ? 16 : 2);
  check_operand(w, r.aligned ? 16 : 2);
  check_operand(y, static_cast<std::uintptr_t>(out_bytes));
  check_operand(bias, static_cast<std::uintptr_t>(bias_bytes));
  check_operand(residual, static_cast<std::uintptr_t>(out_bytes));
  if (a.bias != nullptr && bias.empty())
    throw InvalidRequest(
        "skinny_gemm: bias is given, but the plan was made with bias=none; plan with its type or pass null");
  if (a.residual != nullptr && residual.empty())
    throw InvalidRequest(
        "skinny_gemm: residual is given, but the plan was made without; plan with residual=true or pass "
        "null");
  if (a.programmatic && !r.programmatic)
    throw InvalidRequest(
        "skinny_gemm: a programmatic launch is asked for, but the plan was made with programmatic=false; "
        "plan with "
        "true or launch without");
  check_apart(y, x);
  check_apart(y, w);
  check_apart(y, bias);
  if (a.residual != a.y || residual.stride != y.stride) check_apart(y, residual);

  const SkinnyGemmArgs args{.x = a.x,
                            .w = a.w,
                            .bias = a.bias,
                            .residual = a.residual,
                            .y = a.y,
                            .x_stride = x.stride,
                            .w_stride = w.stride,
                            .residual_stride = residual.stride,
                            .y_stride = y.stride,
                            .m = static_cast<int>(r.m),
                            .n = static_cast<int>(r.n),
                            .k = static_cast<int>(r.k),
                            .bias_type = static_cast<SkinnyGemmBias>(r.bias)};
  LaunchShape shape = plan.state().selection.shape;
  shape.programmatic = a.programmatic;
  plan.launch(stream, shape, args);
}

}  // namespace jitsmith
