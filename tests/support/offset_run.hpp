// An engine with the small op of offset_op.hpp, and what its kernel computes.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <jitsmith/runtime/engine.hpp>

#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/offset_op.hpp"

namespace jitsmith::test {

struct OffsetBench {
  using Change = std::function<void(Options&)>;

  // On the host target, and a cache that knows its kernels after the first run, unless another one is named.
  explicit OffsetBench(const std::string& cache = kernel_cache(), const Change& change = {})
      : OffsetBench(host_options(cache), change) {}
  OffsetBench(Options options, const Change& change)
      : engine([&] {
          options.events = events.sink();
          if (change) change(options);
          return options;
        }()) {
    engine.add(offset_op());
  }
  Events events;
  Engine engine;
};

// What a launch of `n` elements writes, between guards.
inline std::vector<float> run_offset(const Plan& plan, int n) {
  std::vector<float> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(n) + 2, -1.0f);
  std::iota(x.begin(), x.end(), 0.0f);
  plan.launch(nullptr, plan.state().selection.shape, y.data() + 1, static_cast<const float*>(x.data()), 0.5f,
              n);
  return y;
}

// The same without a kernel.
inline std::vector<float> expected_offset(int n) {
  std::vector<float> y(static_cast<std::size_t>(n) + 2, -1.0f);
  for (int i = 0; i < n; ++i) y[static_cast<std::size_t>(i) + 1] = static_cast<float>(i) + 0.5f;
  return y;
}

}  // namespace jitsmith::test
