// Binaries: from a template and its parameters to code: specialize -> key -> cache -> compile. Thread safe.
// Private.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/jit/key.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/template_files.hpp>
#include <jitsmith/runtime/binary_source.hpp>
#include <jitsmith/runtime/census.hpp>
#include <jitsmith/runtime/lookup.hpp>
#include <jitsmith/runtime/options.hpp>
#include <jitsmith/runtime/single_flight.hpp>

namespace jitsmith {

// All that decides the bytes of a binary.
struct KernelSource {
  SpecializedSource source;
  Params params;
  Target target;
  Key key;
  std::string why_no_toolchain;  // one sentence, when there is no compiler: `key` has an empty toolchain then

  std::string describe() const;  // "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<...> for sm_90a"
};

struct SourcedBinary {
  Binary binary;
  BinarySource source = BinarySource::none;
  Digest key;  // not that of the KernelSource when another toolchain made it
};

// Whether a kernel may be specialised where its compiler is missing: its code can only come from the cache.
enum class NoCompiler { is_an_error, is_allowed };

BinarySource source_of(Tier tier);

class Binaries {
 public:
  explicit Binaries(const Options& options);

  // `params` complete. A missing compiler throws CompileError, except under the policy cached_only.
  KernelSource specialize(const KernelTemplate& kernel, const Params& params, const Target& target);
  KernelSource specialize(const KernelTemplate& kernel, const Params& params, const Target& target,
                          NoCompiler no_compiler);

  // From the cache; nullopt for a miss. Under the policy cached_only the toolchain need not be the one that
  // is here, if one is here at all: then those that made what the directory and the bundles hold are tried.
  std::optional<SourcedBinary> find(const KernelSource& kernel);

  // What the cache holds, as of a moment ago: taking it reads every entry, which is done at most once a
  // second and, however many there are, for a small part of the time.
  std::shared_ptr<const Census> census();

  // What the cache has for a kernel with complete parameters, and why it is not more.
  Lookup look_up(const KernelTemplate& kernel, const Params& params, const Target& target);

  // From the cache, or compiled and published. Of many threads or processes that miss one kernel, one
  // compiles. A kernel that did not compile is not tried again.
  SourcedBinary find_or_compile(const KernelSource& kernel);

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
  std::optional<SourcedBinary> find(const Key& key, const Target& target);
  std::optional<SourcedBinary> binary_of(std::optional<Found> found, const Key& key, const Target& target);
  std::optional<SourcedBinary> find_of_another_toolchain(const KernelSource& kernel);
  SourcedBinary build(const KernelSource& kernel);

  EventSink events_;
  Cache cache_;
  TemplateFiles files_;
  NvrtcCompiler nvrtc_;
  HostCompiler host_compiler_;

  // Include closures of templates without headers of their own, by source: to read the includes takes
  // longer than all the rest of a start from a warm cache.
  ForkGuarded<std::map<SourceText, std::vector<SourceFile>>> closures_;

  const bool any_toolchain_;
  ForkMutex census_mutex_;
  std::shared_ptr<const Census> census_;                   // null until asked for
  std::chrono::steady_clock::time_point census_stale_at_;  // from then on it is taken anew

  // Whoever waits for a compile gets its code, also when the cache could not take it. It is not kept: the
  // cache has it.
  SingleFlight<std::string, SourcedBinary, KeepValues::no> building_;

  std::atomic<std::uint64_t> found_{0}, compiled_{0};
};

}  // namespace jitsmith
