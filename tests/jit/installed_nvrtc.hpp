// The NVRTC of this machine, for tests that compile with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/nvrtc_search.hpp>

namespace jitsmith::test {

// Where none is installed the case reports a skip, and nullopt tells it to return.
inline std::optional<NvrtcSearch> installed_nvrtc() {
  NvrtcSearch search = nvrtc_search_from_environment();
  try {
    locate_nvrtc(search);
    return search;
  } catch (const CompileError& error) {
    MESSAGE("SKIP: " << error.what());
    return std::nullopt;
  }
}

// The architectures that jitsmith supports, as far as this NVRTC knows them (12.4 ends at sm_90a).
inline std::vector<std::string> known_archs(NvrtcCompiler& compiler) {
  std::vector<std::string> known;
  const auto supported = compiler.supported_archs();
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"}) {
    for (const auto& candidate : supported) {
      if (candidate == arch) known.push_back(arch);
    }
  }
  return known;
}

inline SpecializedSource source_of(const std::string& text, const std::string& instantiation) {
  return {{"family/kernel.cu", text}, {}, instantiation};
}

}  // namespace jitsmith::test
