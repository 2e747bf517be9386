// What the tests of `jitsmith warm` share: a cache, requests, and a host compiler that is a stub.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <jitsmith/runtime/options.hpp>

#include "support/kernel_cache.hpp"
#include "tool_process.hpp"

namespace jitsmith::test {

using Args = std::vector<std::string>;

inline Args with(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// A cache, a stub for the host compiler, and requests of four host kernels: with tiles of 1, 2, 4 and 8 rows.
class Workshop {
 public:
  // `action` is shell text, run before each compile; $TILE is the tile's number of rows.
  explicit Workshop(const std::string& action = "") {
    std::filesystem::create_directory(here_ / "temp");
    static const std::string object = stub_object();
    std::ofstream(here_ / "kernel.so", std::ios::binary) << object;
    const std::string script = here_ / "c++";
    std::ofstream(script) << "#!/bin/sh\nhere=" << here_.path().string() << '\n'
                          << "TILE=$(sed -n 's/.*<[0-9]*, \\([0-9]*\\), .*/\\1/p' jitsmith_host_driver.cpp)\n"
                          << action << "\ncp $here/kernel.so ../kernel.so\n";
    ::chmod(script.c_str(), 0700);
    std::ofstream(here_ / "set.json")
        << R"({"name": "four", "requests": [{"op": "skinny_gemm", "m": [1, 2, 4, 8], "n": 2112, "k": 7168}]})";
  }

  Tool tool(const std::string& cache = "cache") const {
    Tool tool(here_ / cache);
    tool.set("JITSMITH_HOST_CXX", here_ / "c++").set("TMPDIR", here_ / "temp");
    return tool;
  }
  Args warm() const { return {"warm", "--from", here_ / "set.json", "--arch", "host"}; }
  Options options() const {
    Options options;
    options.executor = Executor::host;
    options.host_compiler.compiler = here_ / "c++";
    options.cache.explicit_dir = here_ / "cache";
    options.policy = Policy::cached_only;
    return options;
  }

  std::string operator/(const std::string& name) const { return here_ / name; }
  bool no_temporary_left() const { return std::filesystem::is_empty(here_ / "temp"); }

 private:
  // What the host compiler looks for in a kernel: its symbol, and the sizes of its parameters.
  static std::string stub_object() {
    const TempDir folder;
    std::ofstream(folder / "stub.cpp") << "extern \"C\" __attribute__((section(\"jitsmith_params\"), used)) "
                                          "const unsigned sizes[] = {8, 0};\n"
                                          "extern \"C\" void jitsmith_host_kernel() {}\n";
    const ChildResult result = run_child({.argv = {"/bin/sh", "-c", "c++ -shared -fPIC -o stub.so stub.cpp"},
                                          .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"},
                                          .directory = folder.path().string()});
    REQUIRE_MESSAGE(result.succeeded, result.output);
    return bytes_of(folder / "stub.so");
  }

  const TempDir here_;
};

inline void check_sound(const Tool& tool) {
  for (const nlohmann::json& entry : nlohmann::json::parse(tool({"cache", "list", "--json"}).out))
    CHECK(!entry.contains("problem"));
}

inline std::string outcomes(const nlohmann::json& json) {
  std::string text;
  for (const nlohmann::json& kernel : json["kernels"])
    text += kernel["outcome"].get<std::string>().substr(0, 2) + ' ';
  return text;
}

inline const std::string k_counts = "4 kernels: ";

}  // namespace jitsmith::test
