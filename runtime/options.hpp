// Options: everything an Engine can be told. The environment is read in one function, once; nothing below
// reads it again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/target.hpp>

namespace jitsmith {

enum class Policy {
  compile,      // compile what is not cached
  cached_only,  // NotCached for what is not cached
};

// "512M" as a number of bytes: K, M, G and T are powers of 1024. Nothing for another text, or for more than
// 64 bits.
std::optional<std::uint64_t> bytes_from_text(std::string_view text);

struct Options {
  Executor executor = Executor::cuda;
  std::optional<std::string> driver_path;  // libcuda; unset: the loader's path
  int device = 0;                          // used when the calling thread has no current CUDA context
  Policy policy = Policy::compile;
  bool any_toolchain = true;  // under cached_only: code of another compiler than the one here serves as well
  DirectoryRequest cache;
  CacheLimits cache_limits;
  std::chrono::milliseconds lock_wait{30'000};  // for another process that compiles the same kernel
  std::vector<std::string> bundles;             // absolute paths of bundle directories or files, in order
  RemoteOptions remote;
  bool look_only = false;  // for questions: no tier of the cache is changed, nor its directory made
  std::string
      record;  // file to which each distinct specialisation is appended, for `jitsmith warm`; empty: none
  bool cold = false;  // for measurements: no tier of the cache (NVRTC's own is never used)
  NvrtcSearch nvrtc;
  NvrtcOptions nvrtc_options;
  HostCompilerOptions host_compiler;
  std::uint64_t host_seed = 0;                // order of blocks and threads on the host target; 0: ascending
  std::string template_folder;                // overrides embedded templates file by file
  std::string tuning_table;                   // the user's table, a JSON Lines file; empty for none
  std::map<std::string, std::string> forced;  // op -> "variant:parameter=value,..."
  EventSink events;

  // JITSMITH_TARGET cuda|host, JITSMITH_DEVICE, JITSMITH_DRIVER, JITSMITH_POLICY compile|cached_only,
  // JITSMITH_CACHE(_DIR), JITSMITH_CACHE_MAX_BYTES (with K, M, G or T for powers of 1024),
  // JITSMITH_CACHE_MAX_ENTRIES, JITSMITH_LOCK_WAIT_MS, JITSMITH_BUNDLES path:path:..., JITSMITH_REMOTE,
  // JITSMITH_REMOTE_MODE read_write|read_only, JITSMITH_RECORD, JITSMITH_COLD 1, JITSMITH_NVRTC,
  // JITSMITH_HOST_CXX, JITSMITH_HOST_SEED, JITSMITH_TEMPLATES, JITSMITH_TABLE, JITSMITH_FORCE
  // "op=variant:parameter=value;op=...". Throws InvalidRequest for a value that has no meaning.
  static Options from_environment();

  // What the cache of an engine with these options is made with: nothing at all in the cold mode.
  CacheOptions cache_options() const;
};

}  // namespace jitsmith
