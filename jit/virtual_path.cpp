#include <jitsmith/jit/virtual_path.hpp>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {

bool is_plain_relative(std::string_view path) {
  const std::filesystem::path parts(path);
  const bool climbs = std::ranges::find(parts, std::filesystem::path("..")) != parts.end();
  const bool odd = std::ranges::any_of(path, [](char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  // "??" may begin a trigraph.
  return !path.empty() && !parts.is_absolute() && !climbs && !odd &&
         path.find("??") == std::string_view::npos;
}

void check_virtual_path(const std::string& path) {
  if (!is_plain_relative(path))
    throw CompileError(
        fmt::format("source path '{}' is not a plain relative path; name it like \"my_kernels/add.cu\"",
                    path),
        {});
}

}  // namespace jitsmith
