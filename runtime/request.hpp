// Request: which op a caller wants, for which shapes and types.
#pragma once

#include <string>

#include <jitsmith/jit/params.hpp>

namespace jitsmith {

struct Request {
  std::string op;
  Params params;

  friend bool operator==(const Request&, const Request&) = default;
};

// "skinny_gemm m=1,n=2112,k=7168"
inline std::string to_string(const Request& request) {
  return request.params.empty() ? request.op : request.op + ' ' + to_string(request.params);
}

}  // namespace jitsmith
