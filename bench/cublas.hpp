// cuBLAS as the peer: the call that frameworks make for a bf16 projection, with its default heuristic. Opened
// at run time.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

namespace jitsmith::bench {

class Cublas {
 public:
  // `path` empty: the loader's libcublas.so.13 or .12. Throws DriverError when there is none.
  explicit Cublas(const std::string& path);

  // y[m,n] = x[m,k] * w[n,k]^T, all bf16, fp32 accumulation; y is f32 when `f32_out`.
  void gemm(CUstream stream, std::int64_t m, std::int64_t n, std::int64_t k, const void* x, const void* w,
            void* y, bool f32_out);

  int version() const { return version_; }

 private:
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
                       int, const void*, void*, int, int, int, int);
  void* handle_ = nullptr;
  int (*set_stream_)(void*, CUstream) = nullptr;
  Gemm gemm_ = nullptr;
  int version_ = 0;
};

}  // namespace jitsmith::bench
