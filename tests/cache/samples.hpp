// Small helpers that the cache tests share: sample entries, files, children, a clock that can be moved.
#pragma once

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/cache/names.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith::test {

inline std::vector<std::byte> elf_payload(std::size_t size, unsigned char fill = 0x5a) {
  std::vector<std::byte> payload(size, std::byte{fill});
  constexpr std::string_view k_magic =
      "\x7f"
      "ELF";
  for (std::size_t i = 0; i < k_magic.size(); ++i) payload.at(i) = static_cast<std::byte>(k_magic[i]);
  return payload;
}

inline Entry sample_entry(std::string key = "template=scale\narch=sm_90a\n",
                          std::size_t payload_bytes = 100) {
  return {EntryKind::cubin, std::move(key), "lowered=_Z5scalePf\nregisters=12\n", elf_payload(payload_bytes)};
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline unsigned mode_of(const std::filesystem::path& path) {
  struct ::stat stat {};
  return ::lstat(path.c_str(), &stat) == 0 ? stat.st_mode & 07777u : 0u;
}

inline std::filesystem::path entry_path(const std::filesystem::path& root, const Digest& digest) {
  return root / "v1" / shard_name(digest) / entry_name(digest);
}

// Every regular file below, but CACHEDIR.TAG and the file of locks.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(root)) return files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = item.path().filename().string();
    if (item.is_regular_file() && name != "CACHEDIR.TAG" && name != k_locks_name)
      files.push_back(item.path());
  }
  return files;
}

inline int open_descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// Runs `body` in a child process; its result, or 100 + the signal that ended it.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

inline constexpr uid_t k_other_user = 54321;  // without an entry in the user database, as in many containers

inline bool is_root() {
  return ::geteuid() == 0;
}

inline bool become(uid_t user) {
  return ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
}

// Stands still in steady time, and nearly so in wall time, unless it is moved; sleeping moves it. Thread
// safe.
class TestClock final : public Clock {
 public:
  std::chrono::system_clock::time_point wall() const override {
    return std::chrono::system_clock::now() + shift_.load();
  }
  std::chrono::steady_clock::time_point steady() const override { return start_ + shift_.load(); }
  void sleep(std::chrono::nanoseconds duration) const override { advance(duration); }
  void advance(std::chrono::nanoseconds by) const { shift_ = shift_.load() + by; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::atomic<std::chrono::nanoseconds> shift_{std::chrono::nanoseconds(0)};
};

// Of a link, not of its target.
inline void set_mtime(const std::filesystem::path& path, std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()).count();
  const std::array<timespec, 2> times{timespec{seconds, 0}, timespec{seconds, 0}};
  if (::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
    throw std::runtime_error("utimensat failed: " + path.string());
}

inline void set_age(const std::filesystem::path& path, std::chrono::seconds age) {
  set_mtime(path, std::chrono::system_clock::now() - age);
}

inline DirectoryRequest at(const std::filesystem::path& path) {
  DirectoryRequest request;
  request.explicit_dir = path.string();
  return request;
}

}  // namespace jitsmith::test
