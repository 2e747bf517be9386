// Small ELF files for tests: a header, and one program segment of notes.
#pragma once

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <elf.h>

namespace jitsmith::test {

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

inline std::string note(std::string_view owner, std::uint32_t type, std::string_view description) {
  std::string bytes;
  Elf64_Nhdr header{};
  header.n_namesz = static_cast<Elf64_Word>(owner.size() + 1);
  header.n_descsz = static_cast<Elf64_Word>(description.size());
  header.n_type = type;
  append(bytes, header);
  bytes += owner;
  bytes.resize((bytes.size() + 4) & ~std::size_t{3}, '\0');
  bytes += description;
  bytes.resize((bytes.size() + 3) & ~std::size_t{3}, '\0');
  return bytes;
}

inline std::string elf_with_notes(std::string_view notes) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  segment.p_filesz = notes.size();
  std::string bytes;
  append(bytes, header);
  append(bytes, segment);
  bytes += notes;
  return bytes;
}

inline std::string elf_with_build_id(std::string_view id) {
  return elf_with_notes(note("Other", 1, "abc") + note("GNU", NT_GNU_BUILD_ID, id));
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace jitsmith::test
