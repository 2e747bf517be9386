#include "support/fake_cuda.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

using jitsmith::test::FakeCuda;

thread_local int t_current = -1;

std::unique_ptr<FakeCuda> g_fake = std::make_unique<FakeCuda>();

FakeCuda& enter() {
  ++g_fake->calls;
  return *g_fake;
}

// Handles are numbers from 1.
template <class Handle>
Handle handle_of(std::size_t number) {
  return reinterpret_cast<Handle>(number + 1);
}
CUcontext context_of(int device) {
  return handle_of<CUcontext>(static_cast<std::size_t>(device));
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda_reset() {
  g_fake = std::make_unique<FakeCuda>();
  g_fake->set_current = [](int device) { t_current = device; };
  t_current = 0;
  return g_fake.get();
}

FakeCuda* fake_cuda() {
  return g_fake.get();
}

CUresult cuInit(unsigned) {
  return enter().init_result;
}

CUresult cuDriverGetVersion(int* version) {
  *version = enter().version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  thread_local std::string text;
  text = "CUDA_ERROR_" + std::to_string(static_cast<int>(error));
  *name = text.c_str();
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the test wants it";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = enter().device_count;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= enter().device_count) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  enter();
  std::strncpy(name, ("Fake GPU " + std::to_string(device)).c_str(), static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  const int capability = enter().capability[device];
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 60 << 20;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 3201000;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 6144;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 0;
      break;  // hidden, as some drivers do
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  enter();
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  enter();
  if (t_current < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = t_current;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  enter();
  *context = t_current < 0 ? nullptr : context_of(t_current);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  enter();
  t_current = static_cast<int>(reinterpret_cast<std::size_t>(context)) - 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  ++enter().synchronizations;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  const FakeCuda& fake = enter();
  if (stream == nullptr && t_current < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (stream == nullptr && fake.capturing != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const bool active = stream != nullptr && stream == fake.capturing;
  *status = active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  FakeCuda& fake = enter();
  const int number = ++fake.loads;
  if (fake.failing_loads > 0) {
    --fake.failing_loads;
    return fake.load_result;
  }
  if (std::memcmp(code,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  *library = handle_of<CUlibrary>(static_cast<std::size_t>(number));
  return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary) {
  ++enter().unloads;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char*) {
  *kernel = reinterpret_cast<CUkernel>(library);
  return enter().get_kernel_result;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  FakeCuda& fake = enter();
  if (t_current < 0) return CUDA_ERROR_INVALID_CONTEXT;
  ++fake.prepared[t_current];
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel, CUdevice) {
  FakeCuda& fake = enter();
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) fake.max_dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  const FakeCuda& fake = enter();
  if (index >= fake.param_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (std::size_t i = 0; i < index; ++i) *offset += fake.param_bytes[i];
  *size = fake.param_bytes[index];
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void** params, void**) {
  FakeCuda& fake = enter();
  ++fake.launches;
  if (fake.launch_result != CUDA_SUCCESS) return fake.launch_result;
  fake.last.config = *config;
  fake.last.arg_bytes = 0;
  for (std::size_t i = 0; i < fake.param_count; ++i) {
    std::memcpy(fake.last.args + fake.last.arg_bytes, params[i], fake.param_bytes[i]);
    fake.last.arg_bytes += fake.param_bytes[i];
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
  enter();
  *memory = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr memory) {
  enter();
  std::free(reinterpret_cast<void*>(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  enter();
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  enter();
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

}  // extern "C"
