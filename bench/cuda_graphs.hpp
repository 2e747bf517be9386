// The part of the driver API that measuring needs and the library does not: streams, graphs, events. Opened
// at run time, so that the benches build and link without a driver.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace jitsmith::bench {

struct CudaGraphs {
  CudaGraphs();  // throws DriverError

  decltype(&::cuStreamCreate) stream_create;
  decltype(&::cuStreamBeginCapture) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuGraphInstantiateWithFlags) instantiate;
  decltype(&::cuGraphLaunch) launch;
  decltype(&::cuGraphExecDestroy) exec_destroy;
  decltype(&::cuGraphDestroy) destroy;
  decltype(&::cuStreamSynchronize) synchronize;
  decltype(&::cuEventCreate) event_create;
  decltype(&::cuEventRecord) event_record;
  decltype(&::cuEventElapsedTime) event_elapsed;
  decltype(&::cuEventSynchronize) event_synchronize;

  static void check(CUresult result, const char* call);
};

// One thing to measure: `enqueue(stream, i)` launches it once, on the i-th set of rotated operands.
struct Contender {
  std::function<void(CUstream, std::size_t)> enqueue;
};

// Median time of one launch of each contender, in microseconds. Each becomes a graph of `launches` nodes in a
// chain; the graphs are replayed in turn, `rounds` times, after one untimed round, so that all meet the same
// clocks and temperature. `spread`, when given, gets the fastest and the slowest round of each.
struct Spread {
  double fastest, slowest;
};
std::vector<double> median_us(const CudaGraphs& cuda, const std::vector<Contender>& contenders,
                              std::size_t launches, int rounds, std::vector<Spread>* spread = nullptr);

}  // namespace jitsmith::bench
