#include <jitsmith/jit/temp_directory.hpp>

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {

TempDirectory::TempDirectory(const std::string& parent) : path_(parent + "/jitsmith-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr)
    throw TransientCompileError(
        fmt::format("cannot make a temporary directory in {}: {}; name another one by TMPDIR", parent,
                    std::strerror(errno)),
        {});
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempDirectory::write(const std::string& relative, std::string_view text) const {
  const std::filesystem::path file = std::filesystem::path(path_) / relative;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ofstream stream(file, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream)
    throw TransientCompileError(
        fmt::format("cannot write {}; is the file system full? TMPDIR names another place", file.string()),
        {});
}

}  // namespace jitsmith
