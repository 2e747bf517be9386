// skinny_gemm: Y[M,N] = X[M,K] * W[N,K]^T (+ bias[N]) (+ residual[M,N]) for small M, as in the projections of
// a decode step.
//
// X and W are bf16 with K adjacent; sums are fp32; Y is bf16 (rounded once, to nearest even) or fp32. M up to
// 32 is served, more is declined. The order of every sum is fixed and does not depend on M
// (templates/skinny_gemm/simt.cu says it), so runs repeat to the bit. With batch_invariant a row has the same
// bits whatever M it is batched with; without it, selection may choose another order for another M.
#pragma once

#include <cstdint>
#include <string_view>

#include <jitsmith/jit/element_type.hpp>
#include <jitsmith/jit/template_files.hpp>
#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/plan.hpp>

namespace jitsmith {

enum class SkinnyGemmFormat : std::uint8_t { bf16, f16, f32, mxfp8 };
enum class SkinnyGemmBiasType : std::uint8_t { none, bf16, f32 };

std::string_view choice_name(SkinnyGemmFormat format);
std::string_view choice_name(SkinnyGemmBiasType type);

// What a plan is made for. It serves every launch with these extents and types.
struct SkinnyGemm {
  static constexpr std::string_view k_op = "skinny_gemm";

  std::int64_t m = 0, n = 0, k = 0;
  ElementType out = ElementType::bf16;  // of Y and residual: bf16 or f32
  SkinnyGemmBiasType bias = SkinnyGemmBiasType::none;
  bool residual = false;
  bool aligned = true;  // X, W and their row strides are multiples of 16 bytes, and so is 2 K
  bool batch_invariant = false;
  bool programmatic = false;                           // whether launches may be programmatic
  SkinnyGemmFormat x_format = SkinnyGemmFormat::bf16;  // formats other than bf16 are declined
  SkinnyGemmFormat w_format = SkinnyGemmFormat::bf16;

  // Pointers in the memory of the target. Strides count elements from row to row; 0 means dense (K for X and
  // W, N for Y and residual). Rows must not overlap. Y may be the residual itself (same pointer and stride)
  // and must not overlap anything else. Alignment: 16 bytes for X and W when the request says aligned, else
  // that of the element.
  struct Args {
    const void* x = nullptr;
    const void* w = nullptr;
    void* y = nullptr;
    const void* bias = nullptr;
    const void* residual = nullptr;
    std::int64_t x_stride = 0, w_stride = 0, y_stride = 0, residual_stride = 0;

    // Programmatic dependent launch: the kernel may begin before the one in front of it in the stream has
    // ended, and asks for W already then. So nothing in front of it that has not ended may write W; X, bias
    // and residual are read, and Y is written, after that kernel has ended. The kernel in front must be one
    // that lets others begin, such as another plan's of jitsmith; behind any other the launch is as a plain
    // one. Needs a plan made with `programmatic`; before sm_90 and on the host target it is as a plain
    // launch.
    bool programmatic = false;
  };

  template <class Visitor>
  void visit(Visitor&& visitor) const {
    visitor("m", m), visitor("n", n), visitor("k", k), visitor("out", out), visitor("bias", bias);
    visitor("residual", residual), visitor("aligned", aligned), visitor("batch_invariant", batch_invariant);
    visitor("programmatic", programmatic), visitor("x_format", x_format), visitor("w_format", w_format);
  }

  // Checks `args` against `request`, then launches. Throws InvalidRequest before anything is written.
  static void run(const Plan& plan, Stream stream, const SkinnyGemm& request, const Args& args);
};

// The family as the engine knows it.
Op skinny_gemm_op(const TemplateFiles& files);

// How it runs on arrays: x, w, bias, residual -> y.
ArrayInterface skinny_gemm_arrays();

// The request as `request` spells it.
SkinnyGemm skinny_gemm_from(const Params& request);

}  // namespace jitsmith
