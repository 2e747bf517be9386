#include "cuda_graphs.hpp"

#include <dlfcn.h>

#include <algorithm>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith::bench {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw DriverError(fmt::format("libcuda has no {}; install a driver of CUDA 12.4 or later", name), -1);
}

}  // namespace

#define BENCH_QUOTE(name) #name
#define BENCH_TEXT(name) BENCH_QUOTE(name)
#define BENCH_FIND(field, name) find(library, BENCH_TEXT(name), field)

CudaGraphs::CudaGraphs() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw DriverError("no GPU driver; this bench needs a GPU", -1);
  BENCH_FIND(stream_create, cuStreamCreate);
  BENCH_FIND(begin_capture, cuStreamBeginCapture);
  BENCH_FIND(end_capture, cuStreamEndCapture);
  BENCH_FIND(instantiate, cuGraphInstantiateWithFlags);
  BENCH_FIND(launch, cuGraphLaunch);
  BENCH_FIND(exec_destroy, cuGraphExecDestroy);
  BENCH_FIND(destroy, cuGraphDestroy);
  BENCH_FIND(synchronize, cuStreamSynchronize);
  BENCH_FIND(event_create, cuEventCreate);
  BENCH_FIND(event_record, cuEventRecord);
  BENCH_FIND(event_elapsed, cuEventElapsedTime);
  BENCH_FIND(event_synchronize, cuEventSynchronize);
}

#undef BENCH_FIND
#undef BENCH_TEXT
#undef BENCH_QUOTE

void CudaGraphs::check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw DriverError(fmt::format("{} failed with code {}", call, static_cast<int>(result)), result);
}

std::vector<double> median_us(const CudaGraphs& cuda, const std::vector<Contender>& contenders,
                              std::size_t launches, int rounds, std::vector<Spread>* spread) {
  CUstream stream = nullptr;
  CudaGraphs::check(cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUevent start = nullptr, stop = nullptr;
  CudaGraphs::check(cuda.event_create(&start, CU_EVENT_DEFAULT), "cuEventCreate");
  CudaGraphs::check(cuda.event_create(&stop, CU_EVENT_DEFAULT), "cuEventCreate");

  std::vector<CUgraphExec> graphs;
  for (const Contender& contender : contenders) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CudaGraphs::check(cuda.begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                      "cuStreamBeginCapture");
    for (std::size_t i = 0; i < launches; ++i) contender.enqueue(stream, i);
    CudaGraphs::check(cuda.end_capture(stream, &graph), "cuStreamEndCapture");
    CudaGraphs::check(cuda.instantiate(&exec, graph, 0), "cuGraphInstantiate");
    cuda.destroy(graph);
    graphs.push_back(exec);
  }

  std::vector<std::vector<double>> times(contenders.size());
  for (int round = -1; round < rounds; ++round)
    for (std::size_t c = 0; c < graphs.size(); ++c) {
      CudaGraphs::check(cuda.event_record(start, stream), "cuEventRecord");
      CudaGraphs::check(cuda.launch(graphs[c], stream), "cuGraphLaunch");
      CudaGraphs::check(cuda.event_record(stop, stream), "cuEventRecord");
      CudaGraphs::check(cuda.event_synchronize(stop), "cuEventSynchronize");
      float ms = 0;
      CudaGraphs::check(cuda.event_elapsed(&ms, start, stop), "cuEventElapsedTime");
      if (round >= 0) times[c].push_back(double{ms} * 1e3 / static_cast<double>(launches));
    }

  std::vector<double> medians;
  for (std::size_t c = 0; c < graphs.size(); ++c) {
    cuda.exec_destroy(graphs[c]);
    std::ranges::sort(times[c]);
    medians.push_back(times[c][times[c].size() / 2]);
    if (spread != nullptr) spread->push_back({times[c].front(), times[c].back()});
  }
  return medians;
}

}  // namespace jitsmith::bench
