#include <jitsmith/jit/temp_directory.hpp>

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/file_system.hpp>
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
  FileSystem& disk = real_file_system();
  Descriptor out(disk, disk.open_at(AT_FDCWD, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  int result = out.is_open() ? 0 : -out.error();
  if (result == 0 && text.size() > disk.file_size_limit()) result = -EFBIG;  // writing would raise SIGXFSZ
  if (result == 0) result = disk.write_full(out.get(), std::as_bytes(std::span(text)));
  if (result == 0) result = out.close();
  if (result < 0)
    throw TransientCompileError(
        fmt::format("cannot write {}: {}; TMPDIR names another place", file.string(), std::strerror(-result)),
        {});
}

}  // namespace jitsmith
