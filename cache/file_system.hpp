// The one seam for system calls on files: everything that the cache asks of the kernel goes through here, so
// that a test can make any call fail.
//
// Results follow the kernel's own convention: zero or more on success, minus errno on failure; errno itself
// is not used. Interruption by a signal and partial transfers are dealt with here and nowhere else. Names are
// relative to a directory descriptor. Thread safe. Nothing throws but list, which may run out of memory.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace jitsmith {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // O_CLOEXEC is always added.
  int open_at(int directory, const char* name, int flags, mode_t mode = 0);
  // Reads until `into` is full or the file ends; returns the number of bytes.
  ssize_t read_full(int file, std::span<std::byte> into);
  // The same from `offset` on; the position of the descriptor is neither used nor moved.
  ssize_t read_full_at(int file, std::span<std::byte> into, std::uint64_t offset);
  // Writes all of `bytes`; returns zero.
  int write_full(int file, std::span<const std::byte> bytes);
  int sync(int file);
  int close(int file);

  virtual int rename_at(int directory, const char* from, const char* to) = 0;
  virtual int unlink_at(int directory, const char* name) = 0;
  virtual int make_directory_at(int directory, const char* name, mode_t mode) = 0;
  virtual int change_mode(int file, mode_t mode) = 0;
  virtual int stat(int file, struct ::stat& out) = 0;
  virtual int stat_at(int directory, const char* name,
                      struct ::stat& out) = 0;    // of a link, not of its target
  virtual int check_writable(int directory) = 0;  // zero when files could be made in it
  virtual int touch(int file) = 0;                // sets the modification time to now
  virtual int list(int directory, std::vector<std::string>& names) = 0;  // without . and ..
  // Locks one byte of the file for this descriptor alone, against other threads as well as other processes,
  // until the last copy of the descriptor is closed. Never waits: -EAGAIN while another descriptor has it.
  // The byte need not exist.
  virtual int lock_byte(int file, std::uint64_t offset) = 0;
  // The largest file that this process may write. Going over it raises SIGXFSZ, which kills by default.
  virtual std::uint64_t file_size_limit() = 0;

 private:
  virtual int open_once(int directory, const char* name, int flags, mode_t mode) = 0;
  virtual ssize_t read_once(int file, std::span<std::byte> into) = 0;
  virtual ssize_t read_at_once(int file, std::span<std::byte> into, std::uint64_t offset) = 0;
  virtual ssize_t write_once(int file, std::span<const std::byte> bytes) = 0;
  virtual int sync_once(int file) = 0;
  virtual int close_once(int file) = 0;
};

// Stateless; lives as long as the program.
FileSystem& real_file_system();

}  // namespace jitsmith
