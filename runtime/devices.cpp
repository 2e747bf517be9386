#include <jitsmith/runtime/devices.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/cuda_device.hpp>
#include <jitsmith/runtime/host_device.hpp>

namespace jitsmith {

Devices::Devices(const Options& options)
    : executor_(options.executor), default_ordinal_(options.device), driver_path_(options.driver_path) {
  if (executor_ == Executor::host) {
    devices_.push_back(std::make_unique<HostDevice>(options.host_seed));
    ready_[0] = devices_.front().get();
  }
}

Devices::~Devices() = default;

Device& Devices::current() {
  if (executor_ == Executor::host) return *ready_[0].load(std::memory_order_acquire);
  int ordinal = -1;
  if (const Driver* driver = ready_driver_.load(std::memory_order_acquire)) {
    ordinal = current_ordinal(*driver);
    if (ordinal < 0) ordinal = default_ordinal_;
    if (static_cast<std::size_t>(ordinal) < k_max_devices)
      if (Device* device = ready_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire))
        return *device;
  }
  return make(ordinal);
}

Device& Devices::make(int ordinal) {
  const std::scoped_lock lock(making_);
  if (driver_ == nullptr) {
    driver_ = Driver::open(driver_path_);
    ready_driver_.store(driver_.get(), std::memory_order_release);
  }
  if (ordinal < 0) ordinal = current_ordinal(*driver_);
  if (ordinal < 0) ordinal = default_ordinal_;
  if (static_cast<std::size_t>(ordinal) >= k_max_devices)
    throw DriverError(fmt::format("device {} is beyond the {} that are supported; choose a lower one",
                                  ordinal, k_max_devices),
                      -1);
  std::atomic<Device*>& ready = ready_[static_cast<std::size_t>(ordinal)];
  if (ready.load(std::memory_order_relaxed) == nullptr) {
    devices_.push_back(std::make_unique<CudaDevice>(driver_, ordinal));
    ready.store(devices_.back().get(), std::memory_order_release);
  }
  return *ready.load(std::memory_order_relaxed);
}

}  // namespace jitsmith
