#include "cublas.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith::bench {
namespace {

// The values of cublas_api.h and library_types.h.
constexpr int k_op_n = 0, k_op_t = 1, k_r_32f = 0, k_r_16bf = 14, k_compute_32f = 68, k_gemm_default = -1;

void check(int status, const char* call) {
  if (status != 0) throw DriverError(fmt::format("{} failed with status {}", call, status), status);
}

}  // namespace

Cublas::Cublas(const std::string& path) {
  void* library = nullptr;
  for (const std::string& name : {path, std::string("libcublas.so.13"), std::string("libcublas.so.12")})
    if (library == nullptr && !name.empty()) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw DriverError("no cuBLAS to compare with; give its path by --cublas", -1);
  int (*create)(void**) = nullptr;
  int (*get_version)(void*, int*) = nullptr;
  create = reinterpret_cast<decltype(create)>(dlsym(library, "cublasCreate_v2"));
  get_version = reinterpret_cast<decltype(get_version)>(dlsym(library, "cublasGetVersion_v2"));
  set_stream_ = reinterpret_cast<decltype(set_stream_)>(dlsym(library, "cublasSetStream_v2"));
  gemm_ = reinterpret_cast<Gemm>(dlsym(library, "cublasGemmEx"));
  if (create == nullptr || get_version == nullptr || set_stream_ == nullptr || gemm_ == nullptr)
    throw DriverError("this cuBLAS lacks cublasGemmEx; give another by --cublas", -1);
  check(create(&handle_), "cublasCreate");
  check(get_version(handle_, &version_), "cublasGetVersion");
}

void Cublas::gemm(CUstream stream, std::int64_t m, std::int64_t n, std::int64_t k, const void* x,
                  const void* w, void* y, bool f32_out) {
  const float one = 1, zero = 0;
  const int mi = static_cast<int>(m), ni = static_cast<int>(n), ki = static_cast<int>(k);
  check(set_stream_(handle_, stream), "cublasSetStream");
  // Column-major: Y^T[n,m] = W^T' X, with W seen as [k,n] and X as [k,m].
  check(gemm_(handle_, k_op_t, k_op_n, ni, mi, ki, &one, w, k_r_16bf, ki, x, k_r_16bf, ki, &zero, y,
              f32_out ? k_r_32f : k_r_16bf, ni, k_compute_32f, k_gemm_default),
        "cublasGemmEx");
}

}  // namespace jitsmith::bench
