// What the tests of `jitsmith cache` share: a cache directory with two kernels, and copies of it to change.
#pragma once

#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/kernel_cache.hpp"
#include "tool_process.hpp"

namespace jitsmith::test {

// Made once.
inline const std::string& filled_cache() {
  static const TempDir directory;
  static const std::string path = [] {
    const Tool tool(directory / "c");
    for (const char* m : {"m=1", "m=2"})
      REQUIRE(tool({"warm", "skinny_gemm", "--set", m, "--set", "n=4", "--set", "k=16", "--arch", "host"})
                  .status == 0);
    return directory / "c";
  }();
  return path;
}

class CopiedCache {
 public:
  CopiedCache() { std::filesystem::copy(filled_cache(), path(), std::filesystem::copy_options::recursive); }
  std::string path() const { return directory_ / "c"; }
  std::string file(const std::string& name) const { return directory_ / name; }

 private:
  TempDir directory_;
};

inline nlohmann::json json_of(const ToolResult& result) {
  INFO(result.err);
  REQUIRE_FALSE(result.out.empty());
  return nlohmann::json::parse(result.out);
}

}  // namespace jitsmith::test
