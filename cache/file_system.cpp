#include <jitsmith/cache/file_system.hpp>

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

namespace jitsmith {
namespace {

template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// Calls `read_from(bytes done)` until `into` is full or the file ends.
template <class Read>
ssize_t in_full(std::span<std::byte> into, Read read_from) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = uninterrupted([&] { return read_from(done); });
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

template <class Result>
Result or_errno(Result result) {
  return result < 0 ? static_cast<Result>(-errno) : result;
}

class RealFileSystem final : public FileSystem {
 public:
  int rename_at(int directory, const char* from, const char* to) override {
    return or_errno(::renameat(directory, from, directory, to));
  }
  int unlink_at(int directory, const char* name) override { return or_errno(::unlinkat(directory, name, 0)); }
  int make_directory_at(int directory, const char* name, mode_t mode) override {
    return or_errno(::mkdirat(directory, name, mode));
  }
  int change_mode(int file, mode_t mode) override { return or_errno(::fchmod(file, mode)); }
  int stat(int file, struct ::stat& out) override { return or_errno(::fstat(file, &out)); }
  int stat_at(int directory, const char* name, struct ::stat& out) override {
    return or_errno(::fstatat(directory, name, &out, AT_SYMLINK_NOFOLLOW));
  }
  int check_writable(int directory) override {
    return or_errno(::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS));
  }
  int touch(int file) override { return or_errno(::futimens(file, nullptr)); }

  int list(int directory, std::vector<std::string>& names) override {
    // A descriptor of its own: fdopendir takes it over, and the position in a directory is shared by
    // duplicates.
    const int own = or_errno(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (own < 0) return own;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), &::closedir);
    if (!stream) {
      const int error = -errno;
      ::close(own);
      return error;
    }
    for (;;) {
      errno = 0;  // the only way to tell the end from an error
      const dirent* const item = ::readdir(stream.get());
      if (item == nullptr) return -errno;
      const std::string_view name = item->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }

  int lock_byte(int file, std::uint64_t offset) override {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(offset);
    lock.l_len = 1;
    // Open file description locks: unlike the older kind they exclude threads, and no close of another
    // descriptor of the file lets go of them.
    const int result = or_errno(::fcntl(file, F_OFD_SETLK, &lock));
    return result == -EACCES ? -EAGAIN : result;
  }

  std::uint64_t file_size_limit() override {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return 0;
    return limit.rlim_cur;  // RLIM_INFINITY is the largest value
  }

 private:
  int open_once(int directory, const char* name, int flags, mode_t mode) override {
    return or_errno(::openat(directory, name, flags, mode));
  }
  ssize_t read_once(int file, std::span<std::byte> into) override {
    return or_errno(::read(file, into.data(), into.size()));
  }
  ssize_t read_at_once(int file, std::span<std::byte> into, std::uint64_t offset) override {
    return or_errno(::pread(file, into.data(), into.size(), static_cast<off_t>(offset)));
  }
  ssize_t write_once(int file, std::span<const std::byte> bytes) override {
    return or_errno(::write(file, bytes.data(), bytes.size()));
  }
  int sync_once(int file) override { return or_errno(::fsync(file)); }
  int close_once(int file) override { return or_errno(::close(file)); }
};

}  // namespace

int FileSystem::open_at(int directory, const char* name, int flags, mode_t mode) {
  return uninterrupted([&] { return open_once(directory, name, flags | O_CLOEXEC, mode); });
}

ssize_t FileSystem::read_full(int file, std::span<std::byte> into) {
  return in_full(into, [&](std::size_t done) { return read_once(file, into.subspan(done)); });
}

ssize_t FileSystem::read_full_at(int file, std::span<std::byte> into, std::uint64_t offset) {
  return in_full(into,
                 [&](std::size_t done) { return read_at_once(file, into.subspan(done), offset + done); });
}

int FileSystem::write_full(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = uninterrupted([&] { return write_once(file, bytes); });
    if (put < 0) return static_cast<int>(put);
    if (put == 0) return -EIO;  // no progress and no reason: do not spin
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return 0;
}

int FileSystem::sync(int file) {
  return uninterrupted([&] { return sync_once(file); });
}

int FileSystem::close(int file) {
  // Linux has freed the descriptor even when close is interrupted: a second try could close another thread's
  // file.
  const int result = close_once(file);
  return result == -EINTR ? 0 : result;
}

FileSystem& real_file_system() {
  static RealFileSystem instance;
  return instance;
}

}  // namespace jitsmith
