#include <jitsmith/jit/nvrtc_search.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/environment.hpp>
#include <jitsmith/jit/elf.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/loader_cache.hpp>

namespace jitsmith {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> k_library_names = {"libnvrtc.so.13", "libnvrtc.so.12",
                                                             "libnvrtc.so"};

std::vector<std::string> split_path(std::string_view list) {
  std::vector<std::string> dirs;
  while (!list.empty()) {
    const std::size_t colon = std::min(list.find(':'), list.size());
    if (colon > 0) dirs.emplace_back(list.substr(0, colon));
    list.remove_prefix(std::min(colon + 1, list.size()));
  }
  return dirs;
}

// The numbers in a folder name: cuda-12.10 is newer than cuda-12.9, and python3.12 than python3.9.
std::vector<int> version_in(const std::string& name) {
  std::vector<int> numbers;
  bool within = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !within) numbers.push_back(0);
    if (digit && numbers.back() < 100000) numbers.back() = numbers.back() * 10 + (c - '0');
    within = digit;
  }
  return numbers;
}

// The entries of `parent` whose names start with `prefix`, newest version first. An unreadable folder has
// none.
std::vector<std::string> newest_first(const fs::path& parent, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(version_in(a), a) > std::pair(version_in(b), b);
  });
  return names;
}

std::optional<std::string> library_in(const fs::path& dir) {
  for (const std::string_view name : k_library_names) {
    const std::string path = (dir / name).string();
    if (is_elf_file(path)) return path;
  }
  return std::nullopt;
}

std::optional<std::string> library_in_toolkit(const fs::path& root) {
  for (const char* sub : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    if (auto path = library_in(root / sub)) return path;
  }
  return std::nullopt;
}

std::optional<std::string> library_in_wheels(const fs::path& site_packages) {
  for (const char* sub : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
    if (auto path = library_in(site_packages / sub)) return path;
  }
  return std::nullopt;
}

// A path that somebody named is used or refused; falling back would hide the mistake.
std::string required(const std::string& path, std::string_view origin) {
  if (is_elf_file(path)) return fs::canonical(path).string();
  std::error_code error;
  const bool exists = fs::exists(path, error);
  throw CompileError(fmt::format("{} names {}, which {}; give the path of a libnvrtc.so file, or unset it",
                                 origin, path, exists ? "is not a 64-bit shared library" : "does not exist"),
                     {});
}

}  // namespace

std::string locate_nvrtc(const NvrtcSearch& search) {
  if (search.explicit_path) return required(*search.explicit_path, "the NVRTC option");
  if (search.environment_path) return required(*search.environment_path, "JITSMITH_NVRTC");

  std::vector<std::string> searched;
  std::optional<std::string> found;
  const auto look = [&](const std::string& place, const auto& find_in) {
    if (found || place.empty()) return;
    searched.push_back(place);
    found = find_in(place);
  };
  for (const auto& dir : search.library_path) look(dir, library_in);
  look(search.loader_cache, [](const std::string& cache) -> std::optional<std::string> {
    for (const std::string_view name : k_library_names) {
      auto path = path_in_loader_cache(cache, name);
      if (path && is_elf_file(*path)) return path;
    }
    return std::nullopt;
  });
  for (const auto& dir : search.system_dirs) look(dir, library_in);
  for (const auto& root : {search.cuda_home, search.cuda_path}) {
    if (root) look(*root, library_in_toolkit);
  }
  look(search.toolkit_parent + "/cuda*", [&](const std::string&) -> std::optional<std::string> {
    for (const auto& name : newest_first(search.toolkit_parent, "cuda")) {
      if (auto path = library_in_toolkit(fs::path(search.toolkit_parent) / name)) return path;
    }
    return std::nullopt;
  });
  for (const auto& root : search.wheel_roots) look(root, library_in_wheels);
  if (found) return fs::canonical(*found).string();

  throw CompileError(
      fmt::format("no NVRTC was found (looked for {} in {}); install the CUDA toolkit or `pip install "
                  "nvidia-cuda-nvrtc`, or set JITSMITH_NVRTC to the path of libnvrtc.so",
                  fmt::join(k_library_names, ", "), fmt::join(searched, ", ")),
      {});
}

NvrtcSearch nvrtc_search_from_environment() {
  NvrtcSearch search;
  search.environment_path = environment("JITSMITH_NVRTC");
  search.library_path = split_path(environment("LD_LIBRARY_PATH").value_or(""));
  search.loader_cache = "/etc/ld.so.cache";
  search.system_dirs = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
  search.cuda_home = environment("CUDA_HOME");
  search.cuda_path = environment("CUDA_PATH");
  search.toolkit_parent = "/usr/local";
  search.append_flags = environment("NVRTC_APPEND_FLAGS").value_or("");

  const auto add_python = [&](const fs::path& lib, std::initializer_list<const char*> packages) {
    for (const auto& python : newest_first(lib, "python3")) {
      for (const char* folder : packages) {
        const fs::path root = lib / python / folder;
        std::error_code error;
        if (fs::is_directory(root, error)) search.wheel_roots.push_back(root.string());
      }
    }
  };
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto root = environment(prefix)) add_python(fs::path(*root) / "lib", {"site-packages"});
  }
  if (const auto home = environment("HOME")) add_python(fs::path(*home) / ".local/lib", {"site-packages"});
  add_python("/usr/local/lib", {"site-packages", "dist-packages"});
  add_python("/usr/lib", {"site-packages", "dist-packages"});
  return search;
}

}  // namespace jitsmith
