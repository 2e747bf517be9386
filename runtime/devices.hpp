// Devices: the devices of one executor, made when first used. Thread safe.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/runtime/device.hpp>
#include <jitsmith/runtime/options.hpp>

namespace jitsmith {

struct Driver;

class Devices {
 public:
  explicit Devices(const Options& options);
  ~Devices();

  // The GPU of the calling thread's current CUDA context, Options::device when it has none; or the host
  // target. Takes no lock once the device exists. Throws DriverError when there is no driver or no GPU.
  Device& current();

 private:
  Device& make(int ordinal);

  static constexpr std::size_t k_max_devices = 64;

  const Executor executor_;
  const int default_ordinal_;
  const std::optional<std::string> driver_path_;
  std::shared_ptr<const Driver> driver_;  // guarded by making_, once set never changed
  std::atomic<const Driver*> ready_driver_{nullptr};
  std::array<std::atomic<Device*>, k_max_devices> ready_{};
  std::vector<std::unique_ptr<Device>> devices_;  // guarded by making_
  ForkMutex making_;
};

}  // namespace jitsmith
