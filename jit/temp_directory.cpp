#include <jitsmith/jit/temp_directory.hpp>

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/trim.hpp>
#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

namespace fs = std::filesystem;

// 128 random bits follow, so that nobody else's directory is taken for one of these.
constexpr std::string_view k_prefix = "jitsmith";

// A compile takes hundreds of milliseconds; looking through so many names takes one or two.
constexpr int k_most_names = 4096;
constexpr int k_most_removed = 16;

bool is_ours(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(k_prefix) && is_temporary_name(std::string_view(name).substr(k_prefix.size()));
}

Descriptor open_directory_itself(const fs::path& path) {
  FileSystem& disk = real_file_system();
  return {disk, disk.open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
}

bool try_lock(const Descriptor& directory) {
  return ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
}

// The age as well as the lock: one that was just made is not locked yet, and machines that share a folder may
// not share its locks.
bool is_left_behind(const Descriptor& directory) {
  struct ::stat stat {};
  if (!directory.is_open() || real_file_system().stat(directory.get(), stat) < 0) return false;
  const auto age = std::chrono::system_clock::now() - modification_time(stat);
  return stat.st_uid == ::geteuid() && age >= k_leftover_age && try_lock(directory);
}

void sweep(const std::string& parent) {
  std::error_code error;
  int names = 0, removed = 0;
  for (fs::directory_iterator entry(parent, error), end;
       !error && entry != end && names < k_most_names && removed < k_most_removed;
       entry.increment(error), ++names) {
    if (!is_ours(entry->path())) continue;
    const Descriptor directory = open_directory_itself(entry->path());
    if (!is_left_behind(directory)) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
    ++removed;
  }
}

[[noreturn]] void cannot_write(const std::string& parent, int error) {
  throw TransientCompileError(fmt::format("the temporary files of a compile can't be written in {}: {}; {}",
                                          folder_of_temporaries(parent), message_of_errno(error),
                                          remedy_of_errno(error, "set TMPDIR to another folder")),
                              {});
}

}  // namespace

std::string folder_of_temporaries(const std::string& path) {
  fs::path folder = path;
  while (is_ours(folder)) folder = folder.parent_path();
  return folder.string();
}

TempDirectory::TempDirectory(const std::string& parent) {
  sweep(parent);
  const auto name = random_temporary_name();
  if (!name) cannot_write(parent, EAGAIN);
  path_ = fmt::format("{}/{}{}", parent, k_prefix, *name);
  if (const int result = real_file_system().make_directory_at(AT_FDCWD, path_.c_str(), 0700); result < 0)
    cannot_write(parent, -result);
  lock_ = open_directory_itself(path_);
  if (lock_.is_open()) try_lock(lock_);  // without one its age protects it, for an hour after the last change
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TempDirectory::write(const std::string& relative, std::string_view text) const {
  const fs::path file = fs::path(path_) / relative;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  FileSystem& disk = real_file_system();
  Descriptor out(disk, disk.open_at(AT_FDCWD, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  int result = out.is_open() ? 0 : -out.error();
  if (result == 0 && text.size() > disk.file_size_limit()) result = -EFBIG;  // writing would raise SIGXFSZ
  if (result == 0) result = disk.write_full(out.get(), std::as_bytes(std::span(text)));
  if (result == 0) result = out.close();
  if (result < 0) cannot_write(path_, -result);
}

}  // namespace jitsmith
