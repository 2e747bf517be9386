#include <jitsmith/tools/file_argument.hpp>

#include <cerrno>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {

void check_replaceable(const std::string& name, const std::string& file) {
  const std::filesystem::path path = absolute_path(name, file);
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw InvalidRequest(
        fmt::format("{} {} is {}, and only a regular file is replaced; name one, or a new file", name, file,
                    std::filesystem::is_symlink(status) ? "a symbolic link" : "no regular file"));
  if (::access(path.parent_path().c_str(), W_OK | X_OK) != 0)
    throw InvalidRequest(fmt::format("{} {}: no file can be made there: {}; name another place", name, file,
                                     message_of_errno(errno)));
}

std::string absolute_path(const std::string& name, const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error);
  if (error)
    throw InvalidRequest(
        fmt::format("{} {} is relative to the working directory, which can't be found: {}; give the whole "
                    "path, from / on",
                    name, file, error.message()));
  return path.string();
}

}  // namespace jitsmith
