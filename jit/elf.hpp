// Reading ELF64 little-endian files: sections and symbols of cubins, build-ids of shared libraries. The bytes
// may be hostile: every offset and length is checked before use, and nothing is allocated from a length in
// the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace jitsmith {

// The value of type T at `offset`, or nullopt when it does not lie wholly within `bytes`.
template <typename T>
std::optional<T> read_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// A view of an ELF file in memory; the bytes must outlive it.
class ElfView {
 public:
  struct Section {
    std::uint64_t size_bytes;  // as declared; a section without file contents (shared memory) has a size too
    std::span<const std::byte> bytes;  // empty for a section without file contents
  };

  // nullopt when the bytes are no ELF64 little-endian file with a section table.
  static std::optional<ElfView> parse(std::span<const std::byte> bytes);

  // nullopt when there is no such section, or when it reaches beyond the file.
  std::optional<Section> section(std::string_view name) const;

  // The index of a symbol in .symtab.
  std::optional<std::uint32_t> symbol_index(std::string_view name) const;

  // Whether the dynamic loader would find a definition of that name.
  bool exports(std::string_view name) const;

 private:
  explicit ElfView(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
  std::uint64_t section_table_ = 0;
  std::uint16_t section_count_ = 0;
  std::span<const std::byte> section_names_;
};

// Whether the file starts like an ELF64 little-endian file.
bool is_elf_file(const std::string& path);

// The GNU build-id of a file in lower-case hex, or nullopt when it has none. Reads headers and notes only:
// the file may be a library of 140 MB.
std::optional<std::string> build_id_of_file(const std::string& path);

}  // namespace jitsmith
