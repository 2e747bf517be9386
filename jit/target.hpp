// Target: where a specialised kernel runs: an executor and an architecture.
#pragma once

#include <string>

namespace jitsmith {

enum class Executor { cuda, host };

struct Target {
  Executor executor = Executor::cuda;
  std::string arch;  // "sm_90a", ...; "host" for the host executor

  friend bool operator==(const Target&, const Target&) = default;
};

inline Target host_target() {
  return {Executor::host, "host"};
}

}  // namespace jitsmith
