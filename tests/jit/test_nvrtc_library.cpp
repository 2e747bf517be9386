#include <jitsmith/jit/nvrtc_library.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_identity.hpp>

#include <dlfcn.h>

#include "elf_bytes.hpp"
#include "installed_nvrtc.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

std::string message_of_load(const std::string& path) {
  try {
    const NvrtcLibrary library(path);
    return "loaded";
  } catch (const CompileError& error) {
    return error.what();
  }
}

}  // namespace

TEST_SUITE("NvrtcLibrary") {
  TEST_CASE("the installed library tells its version and architectures") {
    const auto search = installed_nvrtc();
    if (!search) return;
    const NvrtcLibrary library(locate_nvrtc(*search));
    CHECK(library.at_least(12, 4));
    CHECK_FALSE(library.at_least(99, 0));
    CHECK(library.version().find('.') != std::string::npos);
    const auto archs = library.supported_archs();
    for (const char* arch : {"sm_80", "sm_90", "sm_90a"})
      CHECK(std::count(archs.begin(), archs.end(), arch) == 1);
    CHECK(std::count(archs.begin(), archs.end(), "sm_80a") == 0);
  }

  TEST_CASE("another library is refused with the function that it lacks") {
    Dl_info libc{};
    REQUIRE(::dladdr(reinterpret_cast<void*>(&std::getenv), &libc) != 0);
    const std::string message = message_of_load(libc.dli_fname);
    CHECK(message.find("is not a usable NVRTC: it has no function nvrtcVersion") != std::string::npos);
    CHECK(message.find(libc.dli_fname) != std::string::npos);
  }

  TEST_CASE("the builtins beside it are loaded with it, for NVRTC looks for them by name alone") {
    const auto search = installed_nvrtc();
    if (!search) return;
    const std::string path = locate_nvrtc(*search);
    const NvrtcLibrary library(path);
    REQUIRE_FALSE(nvrtc_builtins_beside(path).empty());
    for (const std::string& builtins : nvrtc_builtins_beside(path))
      CHECK(::dlopen(builtins.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr);
  }

  TEST_CASE("a broken library is refused with the loader's reason") {
    const TempDir dir;
    write_file(dir / "libnvrtc.so.13", elf_with_build_id("id"));
    const std::string message = message_of_load(dir / "libnvrtc.so.13");
    CHECK(message.find("NVRTC could not be loaded: " + dir / "libnvrtc.so.13") == 0);
    CHECK(message.find("JITSMITH_NVRTC") != std::string::npos);
  }
}
