#include <jitsmith/cache/whole_file.hpp>

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/names.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

namespace jitsmith {
namespace {

int write_and_close(FileSystem& fs, Descriptor file, std::span<const std::span<const std::byte>> parts) {
  std::uint64_t size_bytes = 0;
  for (const std::span<const std::byte> part : parts) size_bytes += part.size();
  if (size_bytes > fs.file_size_limit()) return EFBIG;  // the write would raise SIGXFSZ
  for (const std::span<const std::byte> part : parts)
    if (const int result = fs.write_full(file.get(), part); result < 0) return -result;
  if (const int result = fs.sync(file.get()); result < 0) return -result;
  return -file.close();
}

}  // namespace

std::string message_of_errno(int error) {
  return std::generic_category().message(error);
}

std::string remedy_of_errno(int error, std::string_view otherwise) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return fmt::format("make room there or {}", otherwise);
    case EACCES:
    case EPERM:
    case EROFS:
      return fmt::format("let this user write there or {}", otherwise);
    case ENOENT:
      return fmt::format("make the folder or {}", otherwise);
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files";
    case EFBIG:
      return "raise the limit on the size of files";
    default:
      return std::string(otherwise);
  }
}

std::string read_whole(FileSystem& fs, const std::string& file, std::size_t max_bytes, std::string& text) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor opened(fs, fs.open_at(AT_FDCWD, file.c_str(), O_RDONLY | O_NONBLOCK));
  if (!opened.is_open()) return message_of_errno(opened.error());
  struct ::stat stat {};
  if (const int result = fs.stat(opened.get(), stat); result < 0) return message_of_errno(-result);
  if (!S_ISREG(stat.st_mode)) return "it is no regular file";
  if (static_cast<std::uint64_t>(stat.st_size) > max_bytes)
    return fmt::format("it has more than {} bytes", max_bytes);
  text.resize(static_cast<std::size_t>(stat.st_size));
  const ssize_t got = fs.read_full(opened.get(), std::as_writable_bytes(std::span(text)));
  if (got < 0) return message_of_errno(static_cast<int>(-got));
  text.resize(static_cast<std::size_t>(got));
  return {};
}

int replace_whole(FileSystem& fs, const std::string& file, std::span<const std::span<const std::byte>> parts,
                  mode_t mode) {
  const std::string temporary =
      std::filesystem::path(file).replace_filename(random_temporary_name().value_or(".t"));
  Descriptor opened(fs, fs.open_at(AT_FDCWD, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode));
  if (!opened.is_open()) return opened.error();
  int error = write_and_close(fs, std::move(opened), parts);
  if (error == 0) error = -fs.rename_at(AT_FDCWD, temporary.c_str(), file.c_str());
  if (error != 0) fs.unlink_at(AT_FDCWD, temporary.c_str());
  return error;
}

}  // namespace jitsmith
