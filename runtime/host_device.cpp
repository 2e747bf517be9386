#include <jitsmith/runtime/host_device.hpp>

#include <cstdlib>
#include <cstring>
#include <new>

#include <jitsmith/runtime/host_executor.hpp>

namespace jitsmith {

std::shared_ptr<const LoadedKernel> HostDevice::load(const Binary& binary) {
  return load_host_kernel(binary, {.seed = seed_});
}

void* HostDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void HostDevice::release(void* memory) noexcept {
  std::free(memory);
}

void HostDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void HostDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace jitsmith
