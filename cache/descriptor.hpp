// Owns one file descriptor, or none. Made straight from the result of FileSystem::open_at, whose error it
// keeps.
#pragma once

#include <jitsmith/cache/file_system.hpp>

#include <cerrno>
#include <utility>

namespace jitsmith {

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(FileSystem& file_system, int opened) : file_system_(&file_system), value_(opened) {}
  Descriptor(Descriptor&& other) noexcept
      : file_system_(other.file_system_), value_(std::exchange(other.value_, -EBADF)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_system_, other.file_system_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { close(); }

  bool is_open() const { return value_ >= 0; }
  int get() const { return value_; }
  // Why the file could not be opened (an errno), or zero.
  int error() const { return is_open() ? 0 : -value_; }

  // For a written file the result matters: some file systems report a failed write only here. Zero or -errno.
  int close() {
    if (!is_open()) return 0;
    return file_system_->close(std::exchange(value_, -EBADF));
  }

 private:
  FileSystem* file_system_ = nullptr;
  int value_ = -EBADF;
};

}  // namespace jitsmith
