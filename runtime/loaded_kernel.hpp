// LoadedKernel: code that is ready to launch on a device of one executor.
#pragma once

#include <memory>

#include <jitsmith/runtime/launch_shape.hpp>
#include <jitsmith/runtime/stream.hpp>

namespace jitsmith {

class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  // `args[i]` points to the i-th kernel parameter. Thread safe; neither locks nor allocates on CUDA.
  // Asynchronous on CUDA; on the host target the kernel has run when the call returns. Throws DriverError
  // (CUDA), or HostKernelError (host) when the kernel misuses a barrier or a warp operation.
  virtual void launch(Stream stream, const LaunchShape& shape, void* const* args) const = 0;
};

}  // namespace jitsmith
