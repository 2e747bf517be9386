// An engine on the GPU of this machine, for cases that need one. It depends on no file but the program,
// libcuda and NVRTC.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <jitsmith/runtime/engine.hpp>

#include "support/engine_options.hpp"
#include "support/skip.hpp"

namespace jitsmith::test {

// Null, with the skip reported, where there is no GPU or no NVRTC.
inline std::unique_ptr<Engine> gpu_engine(const std::string& cache_directory, const EventSink& events = {},
                                          const std::map<std::string, std::string>& forced = {}) {
  if (!have_nvrtc()) return nullptr;
  Options options = cuda_options(cache_directory);
  options.events = events;
  options.forced = forced;
  auto engine = std::make_unique<Engine>(std::move(options));
  try {
    engine->current_device();
  } catch (const DriverError& error) {
    report_skip(error.what());
    return nullptr;
  }
  return engine;
}

#define JITSMITH_TEST_QUOTE(name) #name
#define JITSMITH_TEST_TEXT(name) JITSMITH_TEST_QUOTE(name)
// Calls an entry point of the driver that the library itself has no use for, and throws unless it succeeds.
#define JITSMITH_TEST_DRIVER(call, ...) \
  ::jitsmith::test::require_success(    \
      ::jitsmith::test::driver_symbol<decltype(&::call)>(JITSMITH_TEST_TEXT(call))(__VA_ARGS__), #call)

template <class Function>
Function driver_symbol(const char* name) {
  void* library = dlopen(Options::from_environment().driver_path.value_or("libcuda.so.1").c_str(), RTLD_NOW);
  void* symbol = library == nullptr ? nullptr : dlsym(library, name);
  if (symbol == nullptr) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<Function>(symbol);
}

inline void require_success(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed with " + std::to_string(static_cast<int>(result)));
}

// A stream of its own, and a graph recorded on it.
class GpuStream {
 public:
  GpuStream() { JITSMITH_TEST_DRIVER(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING); }
  ~GpuStream() { driver_symbol<decltype(&::cuStreamDestroy)>(JITSMITH_TEST_TEXT(cuStreamDestroy))(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  Stream get() const { return stream_; }
  void synchronize() const { JITSMITH_TEST_DRIVER(cuStreamSynchronize, stream_); }
  void begin_capture() const {
    JITSMITH_TEST_DRIVER(cuStreamBeginCapture, stream_, CU_STREAM_CAPTURE_MODE_GLOBAL);
  }
  CUgraphExec end_capture() const {
    CUgraph graph = nullptr;
    CUgraphExec ready = nullptr;
    JITSMITH_TEST_DRIVER(cuStreamEndCapture, stream_, &graph);
    JITSMITH_TEST_DRIVER(cuGraphInstantiateWithFlags, &ready, graph, 0);
    JITSMITH_TEST_DRIVER(cuGraphDestroy, graph);
    return ready;
  }

 private:
  CUstream stream_ = nullptr;
};

}  // namespace jitsmith::test
