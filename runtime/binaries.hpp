// Binaries: from a template and its parameters to code: specialize -> key -> cache -> compile. Thread safe.
// Private.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/jit/key.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/template_files.hpp>
#include <jitsmith/runtime/options.hpp>

namespace jitsmith {

// All that decides the bytes of a binary.
struct KernelSource {
  SpecializedSource source;
  Target target;
  Key key;

  std::string describe() const;  // "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<...> for sm_90a"
};

class Binaries {
 public:
  explicit Binaries(const Options& options);

  // `params` complete.
  KernelSource specialize(const KernelTemplate& kernel, const Params& params, const Target& target);

  // From the cache; nullopt for a miss.
  std::optional<Binary> find(const KernelSource& kernel);

  // Compiles and publishes.
  Binary compile(const KernelSource& kernel);

  // Compiles past the cache and counts nothing.
  Binary compile_anew(const KernelTemplate& kernel, const Params& params, const Target& target);

  Cache& cache() { return cache_; }
  const TemplateFiles& files() const { return files_; }
  NvrtcCompiler& nvrtc() { return nvrtc_; }
  HostCompiler& host_compiler() { return host_compiler_; }
  std::uint64_t found() const { return found_; }
  std::uint64_t compiled() const { return compiled_; }

 private:
  Compiler& compiler_for(const Target& target);
  std::vector<SourceFile> headers_of(const KernelTemplate& kernel);

  EventSink events_;
  Cache cache_;
  TemplateFiles files_;
  NvrtcCompiler nvrtc_;
  HostCompiler host_compiler_;

  // Include closures of templates without headers of their own, by source text: to read the includes takes
  // longer than all the rest of a start from a warm cache.
  std::mutex closures_mutex_;
  std::map<std::string, std::vector<SourceFile>, std::less<>> closures_;

  std::atomic<std::uint64_t> found_{0}, compiled_{0};
};

}  // namespace jitsmith
