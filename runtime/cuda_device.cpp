#include <jitsmith/runtime/cuda_device.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

#define JITSMITH_DRIVER(call, ...) driver_->check(driver_->call(__VA_ARGS__), #call, facts().name)

namespace jitsmith {
namespace {

// Blocks may have this much shared memory, static and dynamic together, without asking.
constexpr std::uint32_t k_default_shared_bytes = 48 * 1024;

}  // namespace

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(std::shared_ptr<const Driver> driver, CUlibrary library, CUkernel kernel, KernelFacts facts,
             bool launches_programmatically)
      : driver_(std::move(driver)),
        library_(library),
        kernel_(kernel),
        facts_(std::move(facts)),
        launches_programmatically_(launches_programmatically) {}

  ~CudaKernel() override {
    // Failure here means that the driver is already shutting down.
    driver_->library_unload(library_);
  }

  void launch(Stream stream, const LaunchShape& shape, void* const* args) const override {
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    if (shape.cluster > 1) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count++].value.clusterDim = {shape.cluster, 1, 1};
    }
    if (shape.programmatic && launches_programmatically_) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    const CUlaunchConfig config{.gridDimX = shape.grid[0],
                                .gridDimY = shape.grid[1],
                                .gridDimZ = shape.grid[2],
                                .blockDimX = shape.block[0],
                                .blockDimY = shape.block[1],
                                .blockDimZ = shape.block[2],
                                .sharedMemBytes = shape.dynamic_shared_bytes,
                                .hStream = stream,
                                .attrs = attributes,
                                .numAttrs = count};
    // A CUkernel stands for its function in the context of the stream.
    const CUresult result = driver_->launch_kernel_ex(&config, reinterpret_cast<CUfunction>(kernel_),
                                                      const_cast<void**>(args), nullptr);
    if (result != CUDA_SUCCESS)
      driver_->check(result, "cuLaunchKernelEx", "the stream's device, kernel " + facts_.lowered_name);
  }

  CUkernel kernel() const { return kernel_; }
  const KernelFacts& facts() const { return facts_; }

 private:
  std::shared_ptr<const Driver> driver_;
  CUlibrary library_;
  CUkernel kernel_;
  KernelFacts facts_;
  bool launches_programmatically_;
};

namespace {

DeviceFacts facts_of(const Driver& driver, CUdevice device) {
  char name[256] = {};
  driver.check(driver.device_get_name(name, sizeof(name), device), "cuDeviceGetName",
               fmt::format("device {}", device));
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver.check(driver.device_get_attribute(&value, which, device), "cuDeviceGetAttribute", name);
    return value;
  };
  DeviceFacts facts;
  facts.name = name;
  facts.target = {Executor::cuda,
                  arch_of_capability(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))};
  facts.multiprocessors = static_cast<std::uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  facts.l2_bytes = static_cast<std::uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  facts.shared_bytes_per_block =
      static_cast<std::uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  // Clocks are in kHz and the bus in bits; memory transfers twice a clock. A driver that hides a clock says
  // 0: then the profile of the architecture stands in.
  const DeviceFacts profile = device_profile_for_arch(facts.target.arch);
  const double memory_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  const double clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  facts.memory_gb_per_s =
      memory_khz > 0 && bus_bits > 0 ? 0.93 * 2 * memory_khz * bus_bits / 8 / 1e6 : profile.memory_gb_per_s;
  facts.clock_ghz = clock_khz > 0 ? clock_khz / 1e6 : profile.clock_ghz;
  return facts;
}

CUdevice device_of(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  driver.check(driver.device_get(&device, ordinal), "cuDeviceGet", fmt::format("device {}", ordinal));
  return device;
}

}  // namespace

// The calling thread works in a context of this device: its current one, else the primary context. Another
// device's context is put back afterwards; a thread without one keeps the primary context, as with the
// runtime API.
class CudaDevice::InContext {
 public:
  explicit InContext(CudaDevice& device) : driver_(*device.driver_) {
    const int current = current_ordinal(driver_);
    if (current == device.device_) return;
    if (current >= 0) driver_.ctx_get_current(&before_);
    driver_.check(driver_.ctx_set_current(device.primary_context()), "cuCtxSetCurrent", device.facts().name);
  }
  ~InContext() {
    if (before_ != nullptr) driver_.ctx_set_current(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& driver_;
  CUcontext before_ = nullptr;
};

CudaDevice::CudaDevice(std::shared_ptr<const Driver> driver, int ordinal)
    : Device(facts_of(*driver, device_of(*driver, ordinal))),
      driver_(driver),
      device_(device_of(*driver, ordinal)) {}

std::shared_ptr<const LoadedKernel> CudaDevice::load(const Binary& binary) {
  CUlibrary library = nullptr;
  const CUresult refused =
      driver_->library_load_data(&library, binary.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (refused == CUDA_ERROR_INVALID_IMAGE || refused == CUDA_ERROR_NO_BINARY_FOR_GPU ||
      refused == CUDA_ERROR_INVALID_SOURCE || refused == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    throw DriverError(
        fmt::format(
            "the driver, of CUDA {}.{}, refuses code compiled for {}; use an NVRTC no newer than the driver "
            "(JITSMITH_NVRTC), or update the driver",
            driver_->version / 1000, driver_->version % 1000 / 10, facts().target.arch),
        refused);
  driver_->check(refused, "cuLibraryLoadData", facts().name);
  CUkernel kernel = nullptr;
  if (const CUresult result =
          driver_->library_get_kernel(&kernel, library, binary.facts.lowered_name.c_str());
      result != CUDA_SUCCESS) {
    driver_->library_unload(library);
    driver_->check(result, "cuLibraryGetKernel", facts().name + ", kernel " + binary.facts.lowered_name);
  }
  auto loaded = std::make_shared<CudaKernel>(driver_, library, kernel, binary.facts, has_clusters(facts()));

  check_params(*loaded);
  return loaded;
}

// Where the driver reports them, the parameter sizes must be those that the compile found.
void CudaDevice::check_params(const CudaKernel& kernel) {
  if (driver_->kernel_get_param_info == nullptr) return;
  const InContext context(*this);
  const std::vector<std::uint32_t>& compiled = kernel.facts().param_bytes;
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = driver_->kernel_get_param_info(kernel.kernel(), i, &offset, &size);
    if (result != CUDA_ERROR_INVALID_VALUE) driver_->check(result, "cuKernelGetParamInfo", facts().name);
    if (size != compiled[i])
      throw DriverError(
          fmt::format(
              "kernel {} was loaded with other parameters than it was compiled with (parameter {} has "
              "{} bytes, not {}); clear the cache",
              kernel.facts().lowered_name, i, size, compiled[i]),
          -1);
  }
}

void CudaDevice::prepare(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) {
  if (prepared(kernel, dynamic_shared_bytes)) return;
  const auto& loaded = static_cast<const CudaKernel&>(kernel);
  const std::scoped_lock lock(prepared_mutex_);
  const InContext context(*this);
  // Asking for the function loads the code onto the device now, not at the first launch.
  CUfunction function = nullptr;
  JITSMITH_DRIVER(kernel_get_function, &function, loaded.kernel());
  // Only ever raised: another plan may need more than this one.
  std::uint32_t& allowed = prepared_[&kernel];
  if (dynamic_shared_bytes + loaded.facts().static_shared_bytes > k_default_shared_bytes &&
      dynamic_shared_bytes > allowed)
    JITSMITH_DRIVER(kernel_set_attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    static_cast<int>(dynamic_shared_bytes), loaded.kernel(), device_);
  allowed = std::max(allowed, dynamic_shared_bytes);
}

bool CudaDevice::prepared(const LoadedKernel& kernel, std::uint32_t dynamic_shared_bytes) const {
  const std::scoped_lock lock(prepared_mutex_);
  const auto place = prepared_.find(&kernel);
  return place != prepared_.end() && place->second >= dynamic_shared_bytes;
}

bool CudaDevice::capturing(Stream stream) const {
  if (current_ordinal(*driver_) < 0) return false;  // a thread without a context has no stream to capture
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_->stream_is_capturing(stream, &status);
  // Asked about the legacy stream while another one is being captured, the driver answers with this error.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  driver_->check(result, "cuStreamIsCapturing", facts().name);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void* CudaDevice::allocate(std::size_t bytes) {
  const InContext context(*this);
  CUdeviceptr memory = 0;
  if (bytes > 0) JITSMITH_DRIVER(mem_alloc, &memory, bytes);
  return reinterpret_cast<void*>(memory);
}

void CudaDevice::release(void* memory) noexcept {
  // The address says which device it is on.
  if (memory != nullptr) driver_->mem_free(reinterpret_cast<CUdeviceptr>(memory));
}

void CudaDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  const InContext context(*this);
  if (bytes > 0) JITSMITH_DRIVER(memcpy_htod, reinterpret_cast<CUdeviceptr>(to), from, bytes);
}

void CudaDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  const InContext context(*this);
  if (bytes > 0) JITSMITH_DRIVER(memcpy_dtoh, to, reinterpret_cast<CUdeviceptr>(from), bytes);
}

void CudaDevice::synchronize() {
  const InContext context(*this);
  JITSMITH_DRIVER(ctx_synchronize);
}

CUcontext CudaDevice::primary_context() {
  const std::scoped_lock lock(primary_mutex_);
  if (primary_ == nullptr) JITSMITH_DRIVER(device_primary_ctx_retain, &primary_, device_);  // for good
  return primary_;
}

int current_ordinal(const Driver& driver) {
  // Asked for the device without a context the driver reports an error, which tools then show.
  CUcontext context = nullptr;
  CUdevice device = -1;
  if (driver.ctx_get_current(&context) != CUDA_SUCCESS || context == nullptr) return -1;
  return driver.ctx_get_device(&device) == CUDA_SUCCESS ? device : -1;
}

}  // namespace jitsmith
