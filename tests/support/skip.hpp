// How a case says that it can't run here; CTest reads the line from standard output
// (cmake/DiscoverTests.cmake).
#pragma once

#include <cstdio>
#include <string>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_search.hpp>

namespace jitsmith::test {

inline void report_skip(const std::string& reason) {
  std::printf("SKIP: %s\n", reason.c_str());
  std::fflush(stdout);
}

// Reports the skip where no NVRTC is found.
inline bool have_nvrtc() {
  try {
    locate_nvrtc(nvrtc_search_from_environment());
    return true;
  } catch (const CompileError& error) {
    report_skip(error.what());
    return false;
  }
}

}  // namespace jitsmith::test
