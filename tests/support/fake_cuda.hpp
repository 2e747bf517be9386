// A driver without a GPU: libfake_cuda.so implements the entry points of runtime/driver.hpp, behaves as this
// struct says, and records what it was asked. Options::driver_path leads an engine to it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>

namespace jitsmith::test {

struct FakeLaunch {
  CUlaunchConfig config{};
  unsigned char args[256] = {};  // the parameters, one after the other
  std::size_t arg_bytes = 0;
};

struct FakeCuda {
  static constexpr int k_devices = 4;

  // How it behaves.
  int version = 13000;
  int device_count = 1;
  int capability[k_devices] = {90, 90, 80, 90};
  CUresult init_result = CUDA_SUCCESS;
  CUresult load_result = CUDA_SUCCESS;  // of the next `failing_loads` loads
  int failing_loads = 0;
  CUresult get_kernel_result = CUDA_SUCCESS;
  CUresult launch_result = CUDA_SUCCESS;
  CUstream capturing = nullptr;  // the stream that records a graph
  std::size_t param_count = 4;   // of every kernel: those of tests/support/offset_op.hpp
  std::size_t param_bytes[8] = {8, 8, 4, 4};

  // What it was asked.
  std::atomic<int> calls{0};  // of any kind
  std::atomic<int> loads{0}, unloads{0}, launches{0}, synchronizations{0};
  std::atomic<int> prepared[k_devices] = {};  // kernels made ready on each device
  int max_dynamic_shared_bytes = 0;           // as last set
  FakeLaunch last;

  // Makes the primary context of a device current on the calling thread; -1 for none.
  void (*set_current)(int device) = nullptr;
};

}  // namespace jitsmith::test

// Exported by the library: the one state, and a fresh one in its place.
extern "C" jitsmith::test::FakeCuda* fake_cuda();
extern "C" jitsmith::test::FakeCuda* fake_cuda_reset();
