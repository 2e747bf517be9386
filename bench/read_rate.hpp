// The rate at which this GPU reads memory: a plain streaming kernel over 1 GiB, measured in the same run as
// what is compared with it.
#pragma once

#include <jitsmith/runtime/engine.hpp>

#include "cuda_graphs.hpp"

namespace jitsmith::bench {

struct ReadRate {
  double gb_per_s;
  double us_for(double bytes) const { return bytes / gb_per_s / 1e3; }
};

ReadRate measure_read_rate(Engine& engine, const CudaGraphs& cuda);

}  // namespace jitsmith::bench
