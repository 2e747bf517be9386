// CudaDevice: one GPU. Code is loaded with the context-free library API, so that one load serves every device
// of an architecture, and launched with cuLaunchKernelEx.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <jitsmith/runtime/device.hpp>
#include <jitsmith/runtime/driver.hpp>

namespace jitsmith {

class CudaKernel;

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<const Driver> driver, int ordinal);

  std::shared_ptr<const LoadedKernel> load(const Binary& binary) override;
  void prepare(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) override;
  bool prepared(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) const override;
  bool capturing(Stream stream) const override;

  // These work in the device's primary context, and leave it current on a thread that had none.
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void synchronize() override;

 private:
  class InContext;

  void check_params(const CudaKernel& kernel);
  CUcontext primary_context();

  std::shared_ptr<const Driver> driver_;
  CUdevice device_;

  std::mutex primary_mutex_;
  CUcontext primary_ = nullptr;

  // The dynamic shared memory that each prepared kernel is allowed. Whoever prepares a kernel keeps it alive.
  mutable std::mutex prepared_mutex_;
  std::map<const LoadedKernel*, std::uint32_t> prepared_;
};

// The device of the calling thread's current context; -1 when it has none.
int current_ordinal(const Driver& driver);

}  // namespace jitsmith
