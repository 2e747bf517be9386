// A kernel cache that test programs and their runs share: host compiles take seconds. Its entries are
// addressed by all that they depend on, so an old one is never wrong.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith::test {

inline std::string kernel_cache() {
  return JITSMITH_TEST_BINARY_DIR "/kernel_cache";
}

// Every file of a cache directory that holds an entry, sorted.
inline std::vector<std::filesystem::path> entry_files(const std::filesystem::path& cache) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache)) {
    if (!file.is_regular_file()) continue;
    std::ifstream stream(file.path(), std::ios::binary);
    char magic[4] = {};
    stream.read(magic, sizeof(magic));
    if (std::string_view(magic, sizeof(magic)) == "\x89JSE") files.push_back(file.path());
  }
  std::ranges::sort(files);
  return files;
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void flip_a_byte_of_every_entry(const std::filesystem::path& cache) {
  for (const auto& path : entry_files(cache)) {
    std::string bytes = bytes_of(path);
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
  }
}

// As if a jitsmith that is one format version ahead had written it.
inline void make_newer(const std::filesystem::path& entry) {
  std::string bytes = bytes_of(entry);
  bytes[8] = 2;
  std::ofstream(entry, std::ios::binary) << bytes;
}

}  // namespace jitsmith::test
