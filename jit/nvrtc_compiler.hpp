// NvrtcCompiler: CUDA C++ in memory to a cubin for one exact architecture, with NVRTC 12.4 or newer. Equal
// input gives equal bytes in any process, thread, order and working directory (from NVRTC 12.9 on; before,
// only for kernels without variables or functions of internal linkage, whose names NVRTC then numbers per
// process).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/compiler.hpp>
#include <jitsmith/jit/nvrtc_search.hpp>

namespace jitsmith {

class NvrtcLibrary;

struct NvrtcOptions {
  bool line_info = false;  // line numbers in the code, for profilers
  std::vector<std::string>
      extra_options;  // given to NVRTC after ours, each as one word; part of the key like ours
};

// Thread safe. Compiles run on threads of their own, at most one a processor and eight in all.
class NvrtcCompiler : public Compiler {
 public:
  explicit NvrtcCompiler(NvrtcSearch search, NvrtcOptions options = {});
  ~NvrtcCompiler() override;

  std::string identity() override;
  std::vector<std::string> options(const std::string& arch) const override;
  Binary compile(const SpecializedSource& source, const std::string& arch) override;

  // The file that is or would be loaded. Throws CompileError when there is none.
  std::string library_path();

  // These load the library.
  std::string version();                       // "13.0"
  std::vector<std::string> supported_archs();  // "sm_75", ..., "sm_90", "sm_90a", ...

 private:
  const NvrtcLibrary& loaded();
  std::counting_semaphore<>& slots();

  const NvrtcSearch search_;
  const NvrtcOptions options_;

  // What was found once stays; a failure does not, for the library may be installed meanwhile.
  ForkMutex mutex_;
  std::optional<std::string> path_;
  std::optional<std::string> identity_;
  std::unique_ptr<const NvrtcLibrary> library_;

  // A child of fork gets slots of its own: those that threads of its parent had taken are never given back
  // there.
  ForkCheck process_;
  std::unique_ptr<std::counting_semaphore<>> slots_;
};

}  // namespace jitsmith
