#include <jitsmith/jit/loader_cache.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>

#include <jitsmith/jit/elf.hpp>

namespace jitsmith {
namespace {

// glibc's format since 2.2 (elf/cache.c; the only one written since 2.32): this magic, the number of entries,
// 24 bytes of other fields, then the entries. Offsets count from the start of the file.
constexpr std::string_view k_magic = "glibc-ld.so.cache1.1";
constexpr std::size_t k_header_bytes = 48;

struct Entry {
  std::int32_t flags;
  std::uint32_t name_at;
  std::uint32_t path_at;
  std::uint32_t os_version;
  std::uint64_t hardware;
};

std::string_view text_at(std::string_view file, std::uint32_t offset) {
  if (offset >= file.size()) return {};
  const std::string_view rest = file.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::optional<std::string> path_in_loader_cache(const std::string& cache, std::string_view library) {
  std::ifstream stream(cache, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!text.starts_with(k_magic)) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(text));
  const auto count = read_at<std::uint32_t>(bytes, k_magic.size());
  for (std::uint64_t index = 0; count && index < *count; ++index) {
    const auto entry = read_at<Entry>(bytes, k_header_bytes + index * sizeof(Entry));
    if (!entry) return std::nullopt;
    if (text_at(text, entry->name_at) == library) return std::string(text_at(text, entry->path_at));
  }
  return std::nullopt;
}

}  // namespace jitsmith
