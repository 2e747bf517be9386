// Your own kernel template through the same door as the built-in ones: y[i] = a * x[i] + y[i].
// Without a GPU: JITSMITH_TARGET=host.
#include <exception>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>

using namespace jitsmith;

namespace {

constexpr const char* k_source = R"(
#include "device/launch.cuh"
#include "device/math.cuh"

template <int Threads, int PerThread>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(Threads) saxpy(float a, const float* x, float* y, jitsmith::int64 n) {
  const jitsmith::int64 first = jitsmith::int64{jitsmith::block_index_x()} * Threads * PerThread + jitsmith::thread_index_x();
  for (int i = 0; i < PerThread; ++i)
    if (const jitsmith::int64 at = first + i * Threads; at < n) y[at] = jitsmith::fma_rn(a, x[at], y[at]);
}
)";

Op saxpy_op() {
  Variant variant;
  variant.name = "grid";
  variant.kernel = {.path = "saxpy.cu", .source = k_source, .function = "saxpy"};
  variant.kernel.schema
      .integer("threads", {.min = 32, .max = 1024, .multiple_of = 32}, "threads of a block", 256)
      .integer("per_thread", {.listed = {1, 2, 4, 8}}, "elements of a thread", 4);
  variant.shape = [](const Params& request, const Params& params) {
    const std::int64_t tile = params.integer("threads") * params.integer("per_thread");
    return LaunchShape{.grid = {static_cast<std::uint32_t>((request.integer("n") + tile - 1) / tile), 1, 1},
                       .block = {static_cast<std::uint32_t>(params.integer("threads")), 1, 1}};
  };
  Op op;
  op.name = "saxpy";
  op.request.integer("n", {.min = 1, .max = 1 << 30}, "elements");
  op.variants = {variant};
  op.generic_variant = "grid";
  op.generic_params = [](const Params&) { return Params{{"threads", 256}, {"per_thread", 4}}; };
  return op;
}

int run() {
  Engine engine;
  engine.add(saxpy_op());
  constexpr long long k_n = 10000;
  const Plan plan = engine.plan(Request{"saxpy", {{"n", k_n}}});

  std::vector<float> x(k_n, 2.0f), y(k_n, 1.0f);
  Device& device = engine.current_device();
  Buffer x_buffer(device, k_n * sizeof(float)), y_buffer(device, k_n * sizeof(float));
  device.copy_in(x_buffer.data(), x.data(), x_buffer.size_bytes());
  device.copy_in(y_buffer.data(), y.data(), y_buffer.size_bytes());
  plan.launch(nullptr, plan.state().selection.shape, 3.0f, x_buffer.data(), y_buffer.data(), k_n);
  device.synchronize();
  device.copy_out(y.data(), y_buffer.data(), y_buffer.size_bytes());

  const bool right = y == std::vector<float>(k_n, 7.0f);
  fmt::print("{} on {}: {}\n", plan.state().facts.lowered_name, device.facts().name,
             right ? "passed" : "FAILED");
  return right ? 0 : 1;
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
