// Driver: the entry points of libcuda that jitsmith uses, opened at run time so that every program starts
// without a driver. Private to runtime: the only header that includes cuda.h.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>

namespace jitsmith {

struct Driver {
  // Opens libcuda (`path`, else the loader's "libcuda.so.1") and initialises it. Throws DriverError that says
  // what is missing: no driver, one that lacks an entry point, or no GPU.
  static std::shared_ptr<const Driver> open(const std::optional<std::string>& path);

  // Throws DriverError "CALL failed with NAME (TEXT) on DEVICE".
  void check(CUresult result, const char* call, const std::string& device) const;

  int version = 0;  // 13000 for CUDA 13.0

  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) driver_get_version;
  decltype(&::cuGetErrorName) get_error_name;
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuDeviceGetCount) device_get_count;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetName) device_get_name;
  decltype(&::cuDeviceGetAttribute) device_get_attribute;
  decltype(&::cuDevicePrimaryCtxRetain) device_primary_ctx_retain;
  decltype(&::cuCtxGetDevice) ctx_get_device;
  decltype(&::cuCtxGetCurrent) ctx_get_current;
  decltype(&::cuCtxSetCurrent) ctx_set_current;
  decltype(&::cuCtxSynchronize) ctx_synchronize;
  decltype(&::cuStreamIsCapturing) stream_is_capturing;
  decltype(&::cuLibraryLoadData) library_load_data;
  decltype(&::cuLibraryUnload) library_unload;
  decltype(&::cuLibraryGetKernel) library_get_kernel;
  decltype(&::cuKernelGetFunction) kernel_get_function;
  decltype(&::cuKernelSetAttribute) kernel_set_attribute;
  decltype(&::cuKernelGetParamInfo) kernel_get_param_info;  // null before CUDA 12.4
  decltype(&::cuLaunchKernelEx) launch_kernel_ex;
  decltype(&::cuMemAlloc) mem_alloc;
  decltype(&::cuMemFree) mem_free;
  decltype(&::cuMemcpyHtoD) memcpy_htod;
  decltype(&::cuMemcpyDtoH) memcpy_dtoh;
};

}  // namespace jitsmith
