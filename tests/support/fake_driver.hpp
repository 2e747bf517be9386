// The fake driver as a test uses it: reset for each case.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "support/engine_options.hpp"
#include "support/fake_cuda.hpp"

namespace jitsmith::test {

// The state of the library that engines open, as new: one GPU of 9.0, whose context is current on this
// thread.
inline FakeCuda& fresh_fake_cuda() {
  void* library = dlopen(JITSMITH_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<decltype(&::fake_cuda_reset)>(dlsym(library, "fake_cuda_reset"))();
}

inline Options fake_cuda_options(const std::string& cache_directory) {
  Options options = cuda_options(cache_directory);
  options.driver_path = JITSMITH_FAKE_CUDA;
  return options;
}

}  // namespace jitsmith::test
