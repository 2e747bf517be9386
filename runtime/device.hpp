// Device: where plans are loaded and launched: one GPU, or the host target.
#pragma once

#include <cstddef>
#include <memory>

#include <jitsmith/jit/binary.hpp>
#include <jitsmith/runtime/device_facts.hpp>
#include <jitsmith/runtime/loaded_kernel.hpp>
#include <jitsmith/runtime/stream.hpp>

namespace jitsmith {

class Device {
 public:
  virtual ~Device() = default;

  const DeviceFacts& facts() const { return facts_; }

  // Loads code. The result serves every device of this executor and architecture.
  virtual std::shared_ptr<const LoadedKernel> load(const Binary& binary) = 0;

  // Makes sure that a kernel from load() runs here without any further work at its first launch: code on the
  // device, `dynamic_shared_bytes` allowed. Throws DriverError.
  virtual void prepare(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) = 0;

  // Whether prepare() has been called for this kernel with as much shared memory or more.
  virtual bool prepared(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) const = 0;

  // Whether `stream` is recording a graph, so that nothing may be loaded now.
  virtual bool capturing(Stream stream) const = 0;

  // Memory of the target, for tools, tests and examples; no op allocates. Copies are complete when they
  // return.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

 protected:
  explicit Device(DeviceFacts facts) : facts_(std::move(facts)) {}

 private:
  DeviceFacts facts_;
};

// Memory of a device that is released with its owner.
class Buffer {
 public:
  Buffer(Device& device, std::size_t bytes)
      : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  ~Buffer() { device_->release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }

 private:
  Device* device_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace jitsmith
