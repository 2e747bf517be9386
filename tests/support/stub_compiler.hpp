// A host compiler that only pretends: it takes its time, notes that it ran, and gives the code that the real
// compiler made of the offset kernel. For tests that ask how often something is compiled and by whom.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>

#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/offset_op.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith::test {

class StubCompiler {
 public:
  explicit StubCompiler(std::chrono::milliseconds duration) {
    Engine real(host_options(kernel_cache()));
    const Binary binary = real.compile(offset_op().variants[0], offset_params(64), host_target());
    std::ofstream(folder_ / "kernel.so", std::ios::binary)
        .write(reinterpret_cast<const char*>(binary.code.data()),
               static_cast<std::streamsize>(binary.code.size()));
    std::ofstream(folder_ / "c++") << fmt::format(
        "#!/bin/sh\necho $$ >> {0}/runs\nsleep {1:.3f}\ncp {0}/kernel.so ../kernel.so\n",
        folder_.path().string(), std::chrono::duration<double>(duration).count());
    std::filesystem::permissions(folder_ / "c++", std::filesystem::perms::owner_all);
  }

  std::string path() const { return folder_ / "c++"; }

  // How often it was started, by any process.
  int runs() const {
    std::ifstream in(folder_ / "runs");
    int count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  }

  Options options(const std::string& cache_directory) const {
    Options options = host_options(cache_directory);
    options.host_compiler.compiler = path();
    return options;
  }

 private:
  TempDir folder_;
};

}  // namespace jitsmith::test
