// Which NVRTC this is, exactly, without loading it: part of every key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

// The libnvrtc-builtins files beside the library `path` (as locate_nvrtc returns it), of the same major
// version, sorted. NVRTC opens one of them by its full version, which only the loaded library knows; there is
// normally exactly one.
std::vector<std::string> nvrtc_builtins_beside(const std::string& path);

// "nvrtc build-id=65be0d... builtins=08d17e...", then append-flags="..." when they are not empty. A library
// without a build-id counts by its contents, a missing builtins library as "none". Reads ELF notes only: some
// 0.1 ms.
std::string nvrtc_identity(const std::string& path, std::string_view append_flags);

}  // namespace jitsmith
