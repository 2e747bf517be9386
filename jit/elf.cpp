#include <jitsmith/jit/elf.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <elf.h>

namespace jitsmith {
namespace {

// Notes of real libraries take some hundred bytes, and they have about ten program headers.
constexpr std::size_t k_max_note_bytes = std::size_t{1} << 16;
constexpr std::size_t k_max_program_headers = 256;

using Bytes = std::span<const std::byte>;

std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// The zero-terminated text at `offset` of a string table; nullopt when it runs off the end.
std::optional<std::string_view> string_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const Bytes rest = table.subspan(offset);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
  if (end == rest.end()) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(rest.data()),
                          static_cast<std::size_t>(end - rest.begin()));
}

bool is_elf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB;
}

std::optional<Bytes> contents(Bytes file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS) return Bytes{};
  return slice(file, section.sh_offset, section.sh_size);
}

std::optional<Elf64_Shdr> section_header(Bytes file, std::uint64_t table, std::uint64_t index) {
  if (table > file.size()) return std::nullopt;
  return read_at<Elf64_Shdr>(file.subspan(table), index * sizeof(Elf64_Shdr));
}

bool read_exactly(std::ifstream& file, std::uint64_t offset, std::span<std::byte> into) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return bool(file.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size())));
}

template <typename T>
std::optional<T> read_from(std::ifstream& file, std::uint64_t offset) {
  std::array<std::byte, sizeof(T)> buffer;
  return read_exactly(file, offset, buffer) ? read_at<T>(buffer, 0) : std::nullopt;
}

std::uint64_t aligned(std::uint64_t size) {
  return (size + 3) & ~std::uint64_t{3};
}

std::optional<std::string> build_id_in_notes(Bytes notes) {
  while (const auto note = read_at<Elf64_Nhdr>(notes, 0)) {
    const std::uint64_t description_at = sizeof(Elf64_Nhdr) + aligned(note->n_namesz);
    const auto name = slice(notes, sizeof(Elf64_Nhdr), note->n_namesz);
    const auto description = slice(notes, description_at, note->n_descsz);
    if (!name || !description) return std::nullopt;
    if (note->n_type == NT_GNU_BUILD_ID && string_at(*name, 0) == ELF_NOTE_GNU && !description->empty()) {
      std::string hex;
      for (const std::byte byte : *description) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
      return hex;
    }
    const std::uint64_t next = description_at + aligned(note->n_descsz);
    if (next >= notes.size()) return std::nullopt;
    notes = notes.subspan(next);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ElfView> ElfView::parse(std::span<const std::byte> bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || !is_elf64(*header) || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
  ElfView view(bytes);
  view.section_table_ = header->e_shoff;
  view.section_count_ = header->e_shnum;
  const auto names = section_header(bytes, header->e_shoff, header->e_shstrndx);
  const auto name_bytes = names ? contents(bytes, *names) : std::nullopt;
  if (!name_bytes) return std::nullopt;
  view.section_names_ = *name_bytes;
  return view;
}

std::optional<ElfView::Section> ElfView::section(std::string_view name) const {
  for (std::uint64_t index = 0; index < section_count_; ++index) {
    const auto header = section_header(bytes_, section_table_, index);
    if (!header) return std::nullopt;
    if (string_at(section_names_, header->sh_name) != name) continue;
    const auto found = contents(bytes_, *header);
    return found ? std::optional(Section{header->sh_size, *found}) : std::nullopt;
  }
  return std::nullopt;
}

namespace {

// The index and the symbol of that name in the table `table`, whose names are in `strings`.
std::optional<std::pair<std::uint32_t, Elf64_Sym>> find_symbol(const ElfView& elf, std::string_view table,
                                                               std::string_view strings,
                                                               std::string_view name) {
  const auto symbols = elf.section(table);
  const auto names = elf.section(strings);
  if (!symbols || !names) return std::nullopt;
  const std::size_t count = symbols->bytes.size() / sizeof(Elf64_Sym);
  for (std::uint32_t index = 0; index < count; ++index) {
    const auto symbol = read_at<Elf64_Sym>(symbols->bytes, index * sizeof(Elf64_Sym));
    if (symbol && string_at(names->bytes, symbol->st_name) == name) return std::pair(index, *symbol);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> ElfView::symbol_index(std::string_view name) const {
  const auto found = find_symbol(*this, ".symtab", ".strtab", name);
  return found ? std::optional(found->first) : std::nullopt;
}

bool ElfView::exports(std::string_view name) const {
  const auto found = find_symbol(*this, ".dynsym", ".dynstr", name);
  return found && found->second.st_shndx != SHN_UNDEF;
}

bool is_elf_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto header = read_from<Elf64_Ehdr>(file, 0);
  return header && is_elf64(*header);
}

std::optional<std::string> build_id_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto header = read_from<Elf64_Ehdr>(file, 0);
  if (!header || !is_elf64(*header) || header->e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  const std::size_t count = std::min<std::size_t>(header->e_phnum, k_max_program_headers);
  for (std::size_t index = 0; index < count; ++index) {
    const auto segment = read_from<Elf64_Phdr>(file, header->e_phoff + index * sizeof(Elf64_Phdr));
    if (!segment) return std::nullopt;
    if (segment->p_type != PT_NOTE || segment->p_filesz > k_max_note_bytes) continue;
    std::vector<std::byte> notes(segment->p_filesz);
    if (!read_exactly(file, segment->p_offset, notes)) continue;
    if (auto id = build_id_in_notes(notes)) return id;
  }
  return std::nullopt;
}

}  // namespace jitsmith
