// A projection of a decode step: Y = X W^T + residual, planned once, launched, checked against fp64.
// Without a GPU: JITSMITH_TARGET=host.
#include <exception>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>

using namespace jitsmith;

namespace {

int run() {
  Engine engine;  // finds the GPU, NVRTC and the cache; JITSMITH_... variables say otherwise
  Device& device = engine.current_device();

  // At start-up: compile or load what the model needs.
  const SkinnyGemm request{.m = 4, .n = 1536, .k = 2048, .residual = true};
  const TypedPlan<SkinnyGemm> plan = engine.plan(request);
  if (!plan) {  // outside the contract: keep your own kernel
    fmt::print("declined: {}\n", plan.reason());
    return 1;
  }

  // Your tensors; here random ones.
  const ArrayInterface arrays = skinny_gemm_arrays();
  const Arrays inputs = arrays.make_inputs(plan.state().request, 1);
  const Array &x = inputs.at("x"), &w = inputs.at("w"), &residual = inputs.at("residual");
  Array y = residual;
  Buffer x_buffer(device, x.bytes.size()), w_buffer(device, w.bytes.size()), y_buffer(device, y.bytes.size());
  device.copy_in(x_buffer.data(), x.bytes.data(), x.bytes.size());
  device.copy_in(w_buffer.data(), w.bytes.data(), w.bytes.size());
  device.copy_in(y_buffer.data(), residual.bytes.data(), y.bytes.size());

  // Every step: no lock, no allocation, one driver call. The residual is updated in place.
  const Stream stream = nullptr;
  plan.launch(
      stream,
      {.x = x_buffer.data(), .w = w_buffer.data(), .y = y_buffer.data(), .residual = y_buffer.data()});

  device.synchronize();
  device.copy_out(y.bytes.data(), y_buffer.data(), y.bytes.size());
  const CheckResult check = check_skinny_gemm({.x = x, .w = w, .bias = nullptr, .residual = &residual}, y);
  fmt::print("{} on {}: {}, {}\n", to_string(plan.state().selection.params), device.facts().name,
             check.passed ? "passed" : "FAILED", check.summary);
  return check.passed ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
