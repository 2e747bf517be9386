// HostCompiler: the system C++ compiler. It turns the same template source that NVRTC reads into a shared
// object, which runtime/host_executor runs on the CPU.
//
// When this library is built with sanitizers, kernels are too: a sanitised kernel needs a sanitised program,
// and a plain kernel in a sanitised program would hide what the sanitizers are for.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/compiler.hpp>

namespace jitsmith {

struct HostCompilerOptions {
  std::string compiler;                                      // a name or a path; empty: c++, g++ or clang++
  std::string search_path = "/usr/local/bin:/usr/bin:/bin";  // where names are searched, usually PATH
  std::string temp_directory = "/tmp";                       // usually TMPDIR
};

class HostCompiler : public Compiler {
 public:
  explicit HostCompiler(HostCompilerOptions options = {});

  // "x86_64-linux-gnu-g++-12 build-id 3f..."
  std::string identity() override;
  std::vector<std::string> options(const std::string& arch) const override;
  // The facts hold the parameter sizes; the code exports `jitsmith_host_kernel`
  // (templates/device/host_api.h).
  Binary compile(const SpecializedSource& source, const std::string& arch) override;

  // The absolute path of the compiler. Throws CompileError when there is none.
  std::string compiler_path() const;

 private:
  HostCompilerOptions options_;
  std::string identity_now() const;
  void check_identity();

  ForkMutex mutex_;
  std::string identity_;  // empty until first asked for
};

}  // namespace jitsmith
