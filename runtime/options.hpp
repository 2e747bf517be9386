// Options: everything an Engine can be told. The environment is read in one function, once; nothing below
// reads it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <jitsmith/cache/directory_request.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/target.hpp>

namespace jitsmith {

enum class Policy {
  compile,      // compile what is not cached
  cached_only,  // NotCached for what is not cached
};

struct Options {
  Executor executor = Executor::cuda;
  std::optional<std::string> driver_path;  // libcuda; unset: the loader's path
  int device = 0;                          // used when the calling thread has no current CUDA context
  Policy policy = Policy::compile;
  DirectoryRequest cache;
  NvrtcSearch nvrtc;
  NvrtcOptions nvrtc_options;
  HostCompilerOptions host_compiler;
  std::uint64_t host_seed = 0;                // order of blocks and threads on the host target; 0: ascending
  std::string template_folder;                // overrides embedded templates file by file
  std::string tuning_table;                   // the user's table, a JSON Lines file; empty for none
  std::map<std::string, std::string> forced;  // op -> "variant:parameter=value,..."
  EventSink events;

  // JITSMITH_TARGET cuda|host, JITSMITH_DEVICE, JITSMITH_DRIVER, JITSMITH_POLICY compile|cached_only,
  // JITSMITH_CACHE(_DIR), JITSMITH_NVRTC, JITSMITH_HOST_CXX, JITSMITH_HOST_SEED, JITSMITH_TEMPLATES,
  // JITSMITH_TABLE, JITSMITH_FORCE "op=variant:parameter=value;op=...". Throws InvalidRequest for a value
  // that has no meaning.
  static Options from_environment();
};

}  // namespace jitsmith
