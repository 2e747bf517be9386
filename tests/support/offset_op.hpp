// The smallest op of a user: y[i] = x[i] + step, one template, one variant, both targets. It compiles in a
// fraction of what a built-in family takes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/plan.hpp>

namespace jitsmith::test {

inline constexpr std::string_view k_offset_source = R"(
#include "device/launch.cuh"
namespace mine {
template <int Threads>
JITSMITH_KERNEL void offset(float* y, const float* x, float step, int n) {
  const int i = static_cast<int>(jitsmith::block_index_x()) * Threads + static_cast<int>(jitsmith::thread_index_x());
  if (i < n) y[i] = x[i] + step;
}
}  // namespace mine
)";

inline Params offset_params(std::int64_t threads) {
  return {{"threads", threads}};
}

inline Op offset_op(std::string source = std::string(k_offset_source)) {
  Variant variant;
  variant.name = "plain";
  variant.kernel = {.path = "mine/offset.cu",
                    .source = std::move(source),
                    .function = "mine::offset",
                    .schema = Schema().integer("threads", {.min = 32, .max = 256, .multiple_of = 32},
                                               "threads of a block", 64)};
  variant.candidates = [](const Params&, const DeviceFacts&) {
    return std::vector<Params>{offset_params(64), offset_params(128)};
  };
  variant.shape = [](const Params& request, const Params& params) {
    const auto threads = params.integer("threads");
    return LaunchShape{
        .grid = {static_cast<std::uint32_t>((request.integer("n") + threads - 1) / threads), 1, 1},
        .block = {static_cast<std::uint32_t>(threads), 1, 1}};
  };
  Op op;
  op.name = "offset";
  op.request = Schema().integer("n", {.min = 0}, "elements");
  op.variants = {std::move(variant)};
  op.generic_variant = "plain";
  op.generic_params = [](const Params&) { return offset_params(64); };
  op.contract = [](const Params& request, const DeviceFacts&) {
    const std::int64_t n = request.integer("n");
    if (n > 1000) return Verdict{Verdict::decline, "offset serves n up to 1000"};
    return Verdict{n == 0 ? Verdict::nothing_to_do : Verdict::serve, {}};
  };
  return op;
}

struct Offset {
  static constexpr std::string_view k_op = "offset";

  std::int64_t n = 0;

  struct Args {
    float* y = nullptr;
    const float* x = nullptr;
    float step = 0;
  };

  template <class Visitor>
  void visit(Visitor&& visitor) const {
    visitor("n", n);
  }

  static void run(const Plan& plan, Stream stream, const Offset& request, const Args& args) {
    plan.launch(stream, plan.state().selection.shape, args.y, args.x, args.step, static_cast<int>(request.n));
  }
};

inline Request offset_request(std::int64_t n) {
  return {"offset", {{"n", n}}};
}

}  // namespace jitsmith::test
