// HostDevice: the host target as a device: kernels run on the CPU, memory is the process's own.
#pragma once

#include <cstdint>

#include <jitsmith/runtime/device.hpp>

namespace jitsmith {

class HostDevice : public Device {
 public:
  explicit HostDevice(std::uint64_t seed) : Device(device_profile("host")), seed_(seed) {}

  std::shared_ptr<const LoadedKernel> load(const Binary& binary) override;
  void prepare(const LoadedKernel&, std::uint32_t) override {}
  bool prepared(const LoadedKernel&, std::uint32_t) const override { return true; }
  bool capturing(Stream) const override { return false; }

  // At least 16-byte aligned. Each allocation is one of malloc's, so that a sanitizer sees its bounds.
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void synchronize() override {}

 private:
  std::uint64_t seed_;
};

}  // namespace jitsmith
