// Runs a plan on arrays in this process's memory, wherever the plan's device is.
#pragma once

#include <chrono>

#include <jitsmith/runtime/arrays.hpp>
#include <jitsmith/runtime/device.hpp>
#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/plan.hpp>

namespace jitsmith {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct ArrayRun {
  Arrays outputs;
  Milliseconds launch{};  // of one launch, until its results are there; copies are not in it
};

// `plan` must not be one of a declined request.
ArrayRun run_on_arrays(const Op& op, const Plan& plan, Device& device, const Arrays& inputs);

// "from the cache on disk", "compiled", ...: where the plan's code came from.
std::string_view describe(BinarySource source);

}  // namespace jitsmith
