// The exceptions that jitsmith throws on purpose. Each message is one sentence: what was wrong (the value),
// which rule it breaks, what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace jitsmith {

// The caller's mistake. Nothing was launched and nothing was written.
struct InvalidRequest : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A template did not compile, or no compiler could be used. `log` is all there is to say beyond the sentence:
// the options, the numbered source lines, the compiler's whole output.
struct CompileError : std::runtime_error {
  CompileError(const std::string& message, std::string log_text)
      : std::runtime_error(message), log(std::move(log_text)) {}
  std::string log;
};

// A compile failed for want of memory, disk space, a process or the like, or its compiler was killed: the
// same input may compile next time, so the failure is not remembered.
struct TransientCompileError : CompileError {
  using CompileError::CompileError;
};

// A call of the GPU driver failed, or there is no driver or no GPU.
struct DriverError : std::runtime_error {
  DriverError(const std::string& message, int driver_code) : std::runtime_error(message), code(driver_code) {}
  int code;  // CUresult; -1 when no driver was reached
};

// The policy, a NoCompileScope or a stream capture forbids the compile or load that a request needs.
struct NotCached : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace jitsmith
