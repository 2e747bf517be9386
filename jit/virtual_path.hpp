// The paths by which templates and headers name each other: files in memory, which the host compiler finds
// below a temporary directory and NVRTC by their very text.
#pragma once

#include <string>
#include <string_view>

namespace jitsmith {

// Whether `path` is relative, does not climb by "..", and reads alike in every compiler's #include line.
bool is_plain_relative(std::string_view path);

// Throws CompileError unless is_plain_relative(path).
void check_virtual_path(const std::string& path);

}  // namespace jitsmith
