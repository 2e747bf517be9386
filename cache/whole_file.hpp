// Files that are read or replaced as a whole: tables, request files, arrays. A reader of a replaced file sees
// the old content or the new, never a part. Nothing here knows the cache directory or what the bytes mean.
#pragma once

#include <jitsmith/cache/file_system.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace jitsmith {

// "No such file or directory" for ENOENT.
std::string message_of_errno(int error);

// What people can do when a file can't be made or written: "make room there or set TMPDIR" for ENOSPC, where
// `otherwise` is "set TMPDIR"; that alone when nothing can be done in the place itself.
std::string remedy_of_errno(int error, std::string_view otherwise);

// Why the file can't be read, or "". Only regular files of at most `max_bytes` can; opening never waits.
std::string read_whole(FileSystem& fs, const std::string& file, std::size_t max_bytes, std::string& text);

// Writes the parts, one after another, to a temporary file beside `file`, syncs it and renames it. A new file
// gets `mode` less the umask. Returns zero or an errno; then `file` is as it was and the temporary file is
// gone.
int replace_whole(FileSystem& fs, const std::string& file, std::span<const std::span<const std::byte>> parts,
                  mode_t mode = 0666);

inline int replace_whole(FileSystem& fs, const std::string& file,
                         std::initializer_list<std::span<const std::byte>> parts) {
  return replace_whole(fs, file, std::span(parts.begin(), parts.size()));
}

}  // namespace jitsmith
