#include <jitsmith/jit/elf.hpp>

#include <array>

#include <doctest/doctest.h>

#include "elf_bytes.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// One section ".data" with "hello", one ".bss" of 4096 bytes without contents, and the symbols "" and
// "kernel".
std::string elf_with_sections() {
  const std::string names("\0.names\0.data\0.bss\0.symtab\0.strtab\0", 36);
  const std::string strings("\0kernel\0", 8);
  std::string symbols;
  append(symbols, Elf64_Sym{});
  append(symbols, Elf64_Sym{.st_name = 1});

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 6;
  header.e_shstrndx = 1;
  std::string contents;
  std::array<Elf64_Shdr, 6> sections{};
  const auto add = [&](std::size_t index, Elf64_Word name, Elf64_Word type, const std::string& data) {
    sections[index].sh_name = name;
    sections[index].sh_type = type;
    sections[index].sh_offset = sizeof(header) + contents.size();
    sections[index].sh_size = data.size();
    contents += data;
  };
  add(1, 1, SHT_STRTAB, names);
  add(2, 8, SHT_PROGBITS, "hello");
  add(3, 14, SHT_NOBITS, "");
  sections[3].sh_size = 4096;
  add(4, 19, SHT_SYMTAB, symbols);
  add(5, 27, SHT_STRTAB, strings);
  header.e_shoff = sizeof(header) + contents.size();
  std::string bytes;
  append(bytes, header);
  bytes += contents;
  for (const auto& section : sections) append(bytes, section);
  return bytes;
}

void visit_everything(const std::string& bytes) {
  const auto view = ElfView::parse(bytes_of(bytes));
  if (!view) return;
  for (const char* name : {".data", ".bss", ".symtab", ".strtab", ".none"}) {
    const auto section = view->section(name);
    if (section) CHECK(section->bytes.size() <= bytes.size());
  }
  view->symbol_index("kernel");
}

}  // namespace

TEST_SUITE("ElfView") {
  TEST_CASE("sections and symbols are found by name") {
    const std::string bytes = elf_with_sections();
    const auto view = ElfView::parse(bytes_of(bytes));
    REQUIRE(view);
    const auto data = view->section(".data");
    REQUIRE(data);
    CHECK(data->size_bytes == 5);
    CHECK(std::memcmp(data->bytes.data(), "hello", 5) == 0);
    CHECK(view->symbol_index("kernel") == 1);
    CHECK_FALSE(view->section(".dat"));
    CHECK_FALSE(view->symbol_index("kern"));
  }

  TEST_CASE("a section without file contents has a size and no bytes") {
    const std::string bytes = elf_with_sections();
    const auto bss = ElfView::parse(bytes_of(bytes))->section(".bss");
    REQUIRE(bss);
    CHECK(bss->size_bytes == 4096);
    CHECK(bss->bytes.empty());
  }

  TEST_CASE("a file cut anywhere is refused or read within its bounds") {
    const std::string whole = elf_with_sections();
    for (std::size_t size = 0; size < whole.size(); ++size) visit_everything(std::string(whole, 0, size));
    CHECK_FALSE(ElfView::parse(bytes_of(whole.substr(0, whole.size() - 5 * sizeof(Elf64_Shdr)))));
  }

  TEST_CASE("any flipped bit is survived") {
    std::string bytes = elf_with_sections();
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      visit_everything(bytes);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
  }

  TEST_CASE("an offset and a size whose sum wraps around are refused") {
    std::string bytes = elf_with_sections();
    const std::size_t data_header_at = bytes.size() - 4 * sizeof(Elf64_Shdr);
    Elf64_Shdr header;
    std::memcpy(&header, bytes.data() + data_header_at, sizeof(header));
    header.sh_size = 0 - header.sh_offset + 1;
    std::memcpy(bytes.data() + data_header_at, &header, sizeof(header));
    CHECK_FALSE(ElfView::parse(bytes_of(bytes))->section(".data"));
  }

  TEST_CASE("other files are no ELF") {
    CHECK_FALSE(ElfView::parse({}));
    CHECK_FALSE(ElfView::parse(bytes_of(std::string(200, 'x'))));
    std::string thirty_two = elf_with_sections();
    thirty_two[EI_CLASS] = ELFCLASS32;
    CHECK_FALSE(ElfView::parse(bytes_of(thirty_two)));
  }
}

TEST_SUITE("build_id_of_file") {
  TEST_CASE("the note of GNU is read, past notes of others") {
    const TempDir dir;
    write_file(dir / "lib.so", elf_with_build_id("\x01\xab\xff"));
    CHECK(build_id_of_file(dir / "lib.so") == "01abff");
    CHECK(is_elf_file(dir / "lib.so"));
  }

  TEST_CASE("a file without one, or no file, has none") {
    const TempDir dir;
    write_file(dir / "lib.so", elf_with_notes(note("GNU", 1, "abc")));
    CHECK_FALSE(build_id_of_file(dir / "lib.so"));
    CHECK_FALSE(build_id_of_file(dir / "absent"));
    CHECK_FALSE(build_id_of_file(dir.path().string()));
    write_file(dir / "text", "not a library");
    CHECK_FALSE(build_id_of_file(dir / "text"));
    CHECK_FALSE(is_elf_file(dir / "text"));
  }

  TEST_CASE("lengths in the file are not believed") {
    const TempDir dir;
    std::string bytes = elf_with_build_id("abcd");
    const std::size_t segment_size_at = sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz);
    SUBCASE("a segment of 2^63 bytes") {
      bytes[segment_size_at + 7] = '\x7f';
    }
    SUBCASE("a segment that reaches beyond the file") {
      bytes[segment_size_at + 1] = '\x01';
    }
    SUBCASE("a note with an owner of 2^32 - 1 bytes") {
      bytes.replace(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), 4, 4, '\xff');
    }
    write_file(dir / "lib.so", bytes);
    CHECK_FALSE(build_id_of_file(dir / "lib.so"));
  }

  TEST_CASE("any flipped bit is survived") {
    const TempDir dir;
    std::string bytes = elf_with_build_id("abcd");
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      write_file(dir / "lib.so", bytes);
      build_id_of_file(dir / "lib.so");
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
  }
}
