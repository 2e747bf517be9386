#include <jitsmith/jit/nvrtc_identity.hpp>

#include <filesystem>

#include <doctest/doctest.h>

#include "elf_bytes.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

TEST_SUITE("nvrtc_identity") {
  TEST_CASE("it is the build-ids of both libraries") {
    const TempDir dir;
    write_file(dir / "libnvrtc.so.13", elf_with_build_id("\x01\x02"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.13", "") == "nvrtc build-id=0102 builtins=none");
    write_file(dir / "libnvrtc-builtins.so.13.0", elf_with_build_id("\x03"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.13", "") == "nvrtc build-id=0102 builtins=03");
  }

  TEST_CASE("builtins of another major version, alternatives and links do not count") {
    const TempDir dir;
    write_file(dir / "libnvrtc.so.13.0.88", elf_with_build_id("\x01"));
    write_file(dir / "libnvrtc-builtins.so.12.9", elf_with_build_id("\x0c"));
    write_file(dir / "libnvrtc-builtins.alt.so.13.0", elf_with_build_id("\x0a"));
    write_file(dir / "libnvrtc-builtins.so.13.0.88", elf_with_build_id("\x0d"));
    std::filesystem::create_symlink("libnvrtc-builtins.so.13.0.88", dir / "libnvrtc-builtins.so.13.0");
    CHECK(nvrtc_identity(dir / "libnvrtc.so.13.0.88", "") == "nvrtc build-id=01 builtins=0d");
    write_file(dir / "libnvrtc-builtins.so.13.1", elf_with_build_id("\x0e"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.13.0.88", "") == "nvrtc build-id=01 builtins=0d,0e");
  }

  TEST_CASE("a library without a build-id counts by its contents") {
    const TempDir dir;
    write_file(dir / "libnvrtc.so.12", elf_with_notes("first"));
    const std::string first = nvrtc_identity(dir / "libnvrtc.so.12", "");
    CHECK(first.starts_with("nvrtc build-id=xxh3-"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.12", "") == first);
    write_file(dir / "libnvrtc.so.12", elf_with_notes("other"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.12", "") != first);
  }

  TEST_CASE("flags that NVRTC takes from the environment are part of it, on one line") {
    const TempDir dir;
    write_file(dir / "libnvrtc.so.13", elf_with_build_id("\x01"));
    CHECK(nvrtc_identity(dir / "libnvrtc.so.13", "-G \"a\"\n") ==
          "nvrtc build-id=01 builtins=none append-flags=\"-G \\x22a\\x22\\x0a\"");
  }
}
