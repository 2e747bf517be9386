// Where libnvrtc is: the places to look in, as plain data, and the search over them. Nothing is loaded here,
// so that a program whose kernels are all cached never pays for the 140 MB library.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace jitsmith {

// The places, in the order of the search. A default-constructed one names no place at all.
struct NvrtcSearch {
  std::optional<std::string> explicit_path;     // an option of the caller: must work, nothing else is tried
  std::optional<std::string> environment_path;  // JITSMITH_NVRTC: likewise
  std::vector<std::string> library_path;        // LD_LIBRARY_PATH
  std::string loader_cache;              // "/etc/ld.so.cache": where the loader finds installed libraries
  std::vector<std::string> system_dirs;  // the loader's own folders, where there is no such cache
  std::optional<std::string> cuda_home;  // CUDA_HOME
  std::optional<std::string> cuda_path;  // CUDA_PATH
  std::string toolkit_parent;            // "/usr/local": holds cuda-13.0, cuda-12.4, cuda; the newest wins
  std::vector<std::string> wheel_roots;  // site-packages folders with the nvidia-cuda-nvrtc wheel

  // NVRTC_APPEND_FLAGS. NVRTC reads it at every compile, so it belongs to what the toolchain is; a program
  // that changes its environment after this was read gets kernels whose key does not say so.
  std::string append_flags;
};

// The search that a program makes by default: reads the environment, and lists the usual folders.
NvrtcSearch nvrtc_search_from_environment();

// The path of the library file, links resolved: the loader looks for the builtins library in the folder of
// the path that it is given. Throws CompileError that says where it was looked for and what to do.
std::string locate_nvrtc(const NvrtcSearch& search);

}  // namespace jitsmith
