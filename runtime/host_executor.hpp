// The host target's executor: runs a kernel that jit/host_compiler compiled, on the CPU, each CUDA thread a
// fiber.
//
// It is there to find mistakes: shared memory starts as NaN, each region ends where it ends (AddressSanitizer
// sees the next byte), a barrier or warp operation that cannot complete is an error and not a hang, and a
// seed shuffles the order of blocks and threads, so that a result that depends on it shows.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <jitsmith/jit/binary.hpp>
#include <jitsmith/runtime/loaded_kernel.hpp>

namespace jitsmith {

// The kernel or its launch is wrong, in a way that CUDA leaves undefined or refuses; or its binary cannot be
// loaded. Outputs may be partly written.
struct HostKernelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct HostExecutorOptions {
  std::uint64_t seed = 0;               // of the order of blocks and threads; 0: ascending
  std::string temp_directory = "/tmp";  // used where the system cannot load code from memory
};

// Throws HostKernelError. launch() runs all blocks on the calling thread and has finished when it returns.
std::shared_ptr<const LoadedKernel> load_host_kernel(const Binary& binary,
                                                     const HostExecutorOptions& options = {});

}  // namespace jitsmith
