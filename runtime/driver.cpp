#include <jitsmith/runtime/driver.hpp>

#include <dlfcn.h>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

template <class Function>
void find_symbol(void* library, const char* name, const std::string& path, Function& function,
                 bool required = true) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && required)
    throw DriverError(
        fmt::format("the GPU driver {} has no {}; install a driver of CUDA 12.4 or later", path, name), -1);
}

}  // namespace

// cuda.h maps some names to versioned ones by macros; the extra step expands them before they become text.
#define JITSMITH_QUOTE(name) #name
#define JITSMITH_TEXT(name) JITSMITH_QUOTE(name)
#define JITSMITH_FIND(field, name) find_symbol(library, JITSMITH_TEXT(name), name_or_path, driver->field)

std::shared_ptr<const Driver> Driver::open(const std::optional<std::string>& path) {
  const std::string name_or_path = path.value_or("libcuda.so.1");
  void* library = dlopen(name_or_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw DriverError(fmt::format("no GPU driver: {}; install the NVIDIA driver, or run on the host target",
                                  why != nullptr ? why : name_or_path),
                      -1);
  }
  // Never closed: the driver keeps threads and handlers of its own.
  auto driver = std::make_shared<Driver>();
  JITSMITH_FIND(init, cuInit);
  JITSMITH_FIND(driver_get_version, cuDriverGetVersion);
  JITSMITH_FIND(get_error_name, cuGetErrorName);
  JITSMITH_FIND(get_error_string, cuGetErrorString);
  JITSMITH_FIND(device_get_count, cuDeviceGetCount);
  JITSMITH_FIND(device_get, cuDeviceGet);
  JITSMITH_FIND(device_get_name, cuDeviceGetName);
  JITSMITH_FIND(device_get_attribute, cuDeviceGetAttribute);
  JITSMITH_FIND(device_primary_ctx_retain, cuDevicePrimaryCtxRetain);
  JITSMITH_FIND(ctx_get_device, cuCtxGetDevice);
  JITSMITH_FIND(ctx_get_current, cuCtxGetCurrent);
  JITSMITH_FIND(ctx_set_current, cuCtxSetCurrent);
  JITSMITH_FIND(ctx_synchronize, cuCtxSynchronize);
  JITSMITH_FIND(stream_is_capturing, cuStreamIsCapturing);
  JITSMITH_FIND(library_load_data, cuLibraryLoadData);
  JITSMITH_FIND(library_unload, cuLibraryUnload);
  JITSMITH_FIND(library_get_kernel, cuLibraryGetKernel);
  JITSMITH_FIND(kernel_get_function, cuKernelGetFunction);
  JITSMITH_FIND(kernel_set_attribute, cuKernelSetAttribute);
  find_symbol(library, JITSMITH_TEXT(cuKernelGetParamInfo), name_or_path, driver->kernel_get_param_info,
              false);
  JITSMITH_FIND(launch_kernel_ex, cuLaunchKernelEx);
  JITSMITH_FIND(mem_alloc, cuMemAlloc);
  JITSMITH_FIND(mem_free, cuMemFree);
  JITSMITH_FIND(memcpy_htod, cuMemcpyHtoD);
  JITSMITH_FIND(memcpy_dtoh, cuMemcpyDtoH);

  driver->check(driver->init(0), "cuInit", "this machine");
  driver->check(driver->driver_get_version(&driver->version), "cuDriverGetVersion", "this machine");
  int count = 0;
  driver->check(driver->device_get_count(&count), "cuDeviceGetCount", "this machine");
  if (count == 0)
    throw DriverError("the driver sees no GPU; check CUDA_VISIBLE_DEVICES, or run on the host target", -1);
  return driver;
}

#undef JITSMITH_FIND
#undef JITSMITH_TEXT
#undef JITSMITH_QUOTE

void Driver::check(CUresult result, const char* call, const std::string& device) const {
  if (result == CUDA_SUCCESS) return;
  const char* error_name = nullptr;
  const char* error_text = nullptr;
  get_error_name(result, &error_name);
  get_error_string(result, &error_text);
  throw DriverError(
      fmt::format("{} failed with {} ({}) on {}", call,
                  error_name != nullptr ? error_name : "an unknown code",
                  error_text != nullptr ? error_text : fmt::format("{}", static_cast<int>(result)), device),
      static_cast<int>(result));
}

}  // namespace jitsmith
