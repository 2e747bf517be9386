#include <jitsmith/jit/nvrtc_search.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/loader_cache.hpp>

#include "elf_bytes.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

// A file at dir/path that passes for a library as long as nobody loads it.
std::string fake_library(const TempDir& dir, const std::string& path) {
  const fs::path full = dir.path() / path;
  fs::create_directories(full.parent_path());
  write_file(full.string(), elf_with_build_id("id"));
  return fs::canonical(full).string();
}

std::string message_of_failure(const NvrtcSearch& search) {
  try {
    return "found " + locate_nvrtc(search);
  } catch (const CompileError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A loader cache with one entry.
std::string loader_cache_text(std::string_view library, std::string_view path) {
  std::string text = "glibc-ld.so.cache1.1";
  append(text, std::uint32_t{1});
  text.resize(48, '\0');
  const auto strings_at = static_cast<std::uint32_t>(48 + 24);
  append(text, std::uint32_t{0x303});
  append(text, strings_at);
  append(text, static_cast<std::uint32_t>(strings_at + library.size() + 1));
  text.resize(strings_at, '\0');
  text.append(library).push_back('\0');
  text.append(path).push_back('\0');
  return text;
}

// Whether anything that `search` says starts with `dir`.
bool names_a_place_below(const NvrtcSearch& search, const std::string& dir) {
  std::vector<std::string> texts{search.append_flags, search.loader_cache, search.toolkit_parent};
  for (const auto& path : {search.environment_path, search.cuda_home, search.cuda_path})
    texts.push_back(path.value_or(""));
  for (const auto* list : {&search.library_path, &search.system_dirs, &search.wheel_roots})
    texts.insert(texts.end(), list->begin(), list->end());
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.starts_with(dir); });
}

class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~SetVariable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_SUITE("locate_nvrtc") {
  TEST_CASE("an earlier place wins over a later one") {
    const TempDir dir;
    NvrtcSearch search;
    search.library_path = {dir / "empty", dir / "path"};
    search.loader_cache = dir / "ld.so.cache";
    search.system_dirs = {dir / "system"};
    search.cuda_home = dir / "home";
    search.cuda_path = dir / "cuda_path";
    search.toolkit_parent = dir / "local";
    search.wheel_roots = {dir / "site"};

    // From the last place to the first, each is found as soon as it has the library.
    const std::string wheel = fake_library(dir, "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == wheel);
    const std::string toolkit = fake_library(dir, "local/cuda-12.9/lib64/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == toolkit);
    const std::string cuda_path = fake_library(dir, "cuda_path/lib64/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == cuda_path);
    const std::string home = fake_library(dir, "home/lib64/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == home);
    const std::string system = fake_library(dir, "system/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == system);
    const std::string cached = fake_library(dir, "indexed/libnvrtc.so.12");
    write_file(search.loader_cache, loader_cache_text("libnvrtc.so.12", cached));
    CHECK(locate_nvrtc(search) == cached);
    const std::string path = fake_library(dir, "path/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == path);
    search.environment_path = fake_library(dir, "named/by_environment");
    CHECK(locate_nvrtc(search) == *search.environment_path);
    search.explicit_path = fake_library(dir, "named/by_option");
    CHECK(locate_nvrtc(search) == *search.explicit_path);
  }

  TEST_CASE("version 13 wins over 12 in one folder, and over the unversioned name") {
    const TempDir dir;
    NvrtcSearch search;
    search.library_path = {dir.path().string()};
    fake_library(dir, "libnvrtc.so");
    CHECK(locate_nvrtc(search).ends_with("libnvrtc.so"));
    fake_library(dir, "libnvrtc.so.12");
    CHECK(locate_nvrtc(search).ends_with("libnvrtc.so.12"));
    fake_library(dir, "libnvrtc.so.13");
    CHECK(locate_nvrtc(search).ends_with("libnvrtc.so.13"));
  }

  TEST_CASE("the newest toolkit wins, by number and not by letter") {
    const TempDir dir;
    NvrtcSearch search;
    search.toolkit_parent = dir.path().string();
    fake_library(dir, "cuda/lib64/libnvrtc.so.12");
    fake_library(dir, "cuda-12.9/lib64/libnvrtc.so.12");
    const std::string newer = fake_library(dir, "cuda-12.10/lib64/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == newer);
    const std::string newest = fake_library(dir, "cuda-13.0/targets/x86_64-linux/lib/libnvrtc.so.13");
    CHECK(locate_nvrtc(search) == newest);
  }

  TEST_CASE("both wheel layouts are known, 13 first") {
    const TempDir dir;
    NvrtcSearch search;
    search.wheel_roots = {dir.path().string()};
    const std::string twelve = fake_library(dir, "nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    CHECK(locate_nvrtc(search) == twelve);
    const std::string thirteen = fake_library(dir, "nvidia/cu13/lib/libnvrtc.so.13");
    CHECK(locate_nvrtc(search) == thirteen);
  }

  TEST_CASE("a place whose file is no library is passed over") {
    const TempDir dir;
    NvrtcSearch search;
    search.library_path = {dir / "a", dir / "b"};
    fs::create_directories(dir / "a");
    write_file(dir / "a/libnvrtc.so.13", "a linker script, say");
    const std::string good = fake_library(dir, "b/libnvrtc.so.13");
    CHECK(locate_nvrtc(search) == good);
  }

  TEST_CASE("links are resolved") {
    const TempDir dir;
    const std::string real = fake_library(dir, "real/libnvrtc.so.13.0.88");
    fs::create_directories(dir / "links");
    fs::create_symlink(real, dir / "links/libnvrtc.so.13");
    NvrtcSearch search;
    search.library_path = {dir / "links"};
    CHECK(locate_nvrtc(search) == real);
  }

  TEST_CASE("a path that was named must work") {
    const TempDir dir;
    NvrtcSearch search;
    search.library_path = {dir.path().string()};
    fake_library(dir, "libnvrtc.so.13");
    SUBCASE("the environment's does not exist") {
      search.environment_path = dir / "absent.so";
      const std::string message = message_of_failure(search);
      CHECK(contains(message, "JITSMITH_NVRTC names " + dir / "absent.so"));
      CHECK(contains(message, "does not exist"));
    }
    SUBCASE("the option's is a folder") {
      search.explicit_path = dir.path().string();
      const std::string message = message_of_failure(search);
      CHECK(contains(message, "the NVRTC option names"));
      CHECK(contains(message, "is not a 64-bit shared library"));
    }
  }

  TEST_CASE("finding none says where it was looked for and what to do") {
    const TempDir dir;
    NvrtcSearch search;
    search.library_path = {dir / "one"};
    search.toolkit_parent = dir / "two";
    search.wheel_roots = {dir / "three"};
    const std::string message = message_of_failure(search);
    for (const char* place : {"one", "two", "three"}) CHECK(contains(message, dir / place));
    CHECK(contains(message, "libnvrtc.so.13"));
    CHECK(contains(message, "pip install nvidia-cuda-nvrtc"));
    CHECK(contains(message, "JITSMITH_NVRTC"));
    CHECK_FALSE(contains(message, "\n"));
  }
}

TEST_SUITE("nvrtc_search_from_environment") {
  TEST_CASE("the variables are read") {
    const TempDir dir;
    fs::create_directories(dir / "venv/lib/python3.9/site-packages");
    fs::create_directories(dir / "venv/lib/python3.12/site-packages");
    const SetVariable nvrtc("JITSMITH_NVRTC", "/x/libnvrtc.so");
    const SetVariable path("LD_LIBRARY_PATH", ":/a::/b:");
    const SetVariable home("CUDA_HOME", "/cuda");
    const SetVariable cuda_path("CUDA_PATH", "");
    const SetVariable venv("VIRTUAL_ENV", dir / "venv");
    const SetVariable flags("NVRTC_APPEND_FLAGS", "-G");
    const NvrtcSearch search = nvrtc_search_from_environment();
    CHECK_FALSE(search.explicit_path);
    CHECK(search.environment_path == "/x/libnvrtc.so");
    CHECK(search.library_path == std::vector<std::string>{"/a", "/b"});
    CHECK(search.cuda_home == "/cuda");
    CHECK_FALSE(search.cuda_path);
    REQUIRE(search.wheel_roots.size() >= 2);
    CHECK(search.wheel_roots[0] == dir / "venv/lib/python3.12/site-packages");
    CHECK(search.wheel_roots[1] == dir / "venv/lib/python3.9/site-packages");
    CHECK(search.append_flags == "-G");
  }

  TEST_CASE("a program with raised privileges believes none of them") {
    if (::geteuid() != 0) return report_skip("raising privileges needs root");
    const TempDir dir;
    std::vector<std::unique_ptr<SetVariable>> variables;
    for (const char* name : {"JITSMITH_NVRTC", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV",
                             "CONDA_PREFIX", "HOME", "NVRTC_APPEND_FLAGS"})
      variables.push_back(std::make_unique<SetVariable>(name, dir / name));
    for (const char* root : {"VIRTUAL_ENV/lib", "CONDA_PREFIX/lib", "HOME/.local/lib"})
      fs::create_directories(dir.path() / root / "python3.12/site-packages");
    REQUIRE(names_a_place_below(nvrtc_search_from_environment(), dir.path().string()));

    const auto believes = [&](const auto& raise) {
      const pid_t child = ::fork();
      if (child == 0)
        ::_exit(raise() != 0 ? 2 : names_a_place_below(nvrtc_search_from_environment(), dir.path().string()));
      int status = -1;
      ::waitpid(child, &status, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    };
    constexpr unsigned k_other = 65534;
    CHECK(believes([] { return ::setresuid(k_other, 0, 0); }) == 0);
    CHECK(believes([] { return ::setresgid(k_other, 0, 0); }) == 0);
  }
}

TEST_SUITE("path_in_loader_cache") {
  TEST_CASE("the entry of the very name is found") {
    const TempDir dir;
    write_file(dir / "cache", loader_cache_text("libnvrtc.so.13", "/opt/lib/libnvrtc.so.13"));
    CHECK(path_in_loader_cache(dir / "cache", "libnvrtc.so.13") == "/opt/lib/libnvrtc.so.13");
    CHECK_FALSE(path_in_loader_cache(dir / "cache", "libnvrtc.so.1"));
    CHECK_FALSE(path_in_loader_cache(dir / "absent", "libnvrtc.so.13"));
  }

  TEST_CASE("a cut or altered cache is survived") {
    const TempDir dir;
    const std::string whole = loader_cache_text("libnvrtc.so.13", "/opt/lib/libnvrtc.so.13");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write_file(dir / "cache", whole.substr(0, size));
      path_in_loader_cache(dir / "cache", "libnvrtc.so.13");
      std::string altered = whole;
      altered[size] = '\xff';
      write_file(dir / "cache", altered);
      path_in_loader_cache(dir / "cache", "libnvrtc.so.13");
    }
    CHECK(path_in_loader_cache(dir / "cache", "libnvrtc.so.13").has_value());
  }
}
