// The dynamic loader's own index of installed libraries (ld.so.cache), read so that a library's file can be
// known without loading it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

// The path that the loader would use for `library` ("libnvrtc.so.13"), from the cache file `cache`
// ("/etc/ld.so.cache"). nullopt when it lists no such library, or when it is missing or of an unknown format.
std::optional<std::string> path_in_loader_cache(const std::string& cache, std::string_view library);

}  // namespace jitsmith
