// Files and directories that nobody else may write: how they are made, opened and judged.
//
// Code from the cache is run, so a place is trusted only by what fstat says about the descriptor in hand: its
// type, its owner, its mode. Symbolic links are never followed. Every file and directory of the cache is made
// here, with its mode set exactly, whatever the umask.
#pragma once

#include <jitsmith/cache/descriptor.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

enum class Vetting { trusted, wrong_type, foreign_owner, writable_by_others, too_large };

// `type` is S_IFREG or S_IFDIR. The owner must be this process's effective user, or root.
Vetting vet(const struct ::stat& stat, mode_t type);

// A predicate for a sentence: "is owned by another user".
std::string_view describe(Vetting vetting);

std::chrono::system_clock::time_point modification_time(const struct ::stat& stat);

struct PrivateDirectory {
  Descriptor directory;
  int error = 0;  // errno of the call that failed
  Vetting vetting = Vetting::trusted;

  bool is_usable() const { return error == 0 && vetting == Vetting::trusted; }
};

enum class IfMissing { fail, create };

PrivateDirectory open_private_directory(FileSystem& file_system, int parent, const char* name,
                                        IfMissing if_missing);

struct PrivateFile {
  Descriptor file;
  struct ::stat stat {};
  std::vector<std::byte> bytes;  // as many as were there, when the file shrank meanwhile
  int error = 0;
  Vetting vetting = Vetting::trusted;  // otherwise nothing was read

  bool is_usable() const { return error == 0 && vetting == Vetting::trusted; }
};

// Read, not mapped: a mapped file that another machine truncates kills its reader with SIGBUS.
PrivateFile read_private_file(FileSystem& file_system, int directory, const char* name,
                              std::size_t max_bytes);

// Opens a file for reading and writing, made empty if it is missing: for its locks, so nothing is read.
PrivateFile open_private_file(FileSystem& file_system, int directory, const char* name);

// Makes `bytes` appear under `name` at once and whole: temporary file, sync, rename. Whatever was under that
// name is replaced. Zero, or the errno of the first call that failed; then the temporary file is gone again.
// The directory is not synced: after a power cut the name may be missing, which is a miss as any other.
int publish_private_file(FileSystem& file_system, int directory, const char* name,
                         std::span<const std::byte> bytes);

}  // namespace jitsmith
