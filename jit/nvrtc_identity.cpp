#include <jitsmith/jit/nvrtc_identity.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/jit/elf.hpp>

namespace jitsmith {
namespace {

namespace fs = std::filesystem;

std::string identity_of_file(const std::string& path) {
  if (auto id = build_id_of_file(path)) return *id;
  std::error_code error;
  std::string contents(fs::file_size(path, error), '\0');
  std::ifstream(path, std::ios::binary).read(contents.data(), static_cast<std::streamsize>(contents.size()));
  return "xxh3-" + digest_of(contents).hex();
}

// "13" for libnvrtc.so.13.0.88; empty for a plain libnvrtc.so, beside which any builtins may serve.
std::string major_of(const std::string& file_name) {
  constexpr std::string_view k_stem = "libnvrtc.so.";
  if (!file_name.starts_with(k_stem)) return {};
  return file_name.substr(k_stem.size(), file_name.find('.', k_stem.size()) - k_stem.size());
}

// An identity is one line: control characters and quotes in the flags are spelled in hex.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    line += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return line;
}

}  // namespace

std::vector<std::string> nvrtc_builtins_beside(const std::string& path) {
  const std::string prefix = "libnvrtc-builtins.so." + major_of(fs::path(path).filename().string());
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(path).parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code link_error;
    if (name.starts_with(prefix) && !it->is_symlink(link_error)) found.push_back(it->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string nvrtc_identity(const std::string& path, std::string_view append_flags) {
  std::vector<std::string> builtins;
  for (const auto& file : nvrtc_builtins_beside(path)) builtins.push_back(identity_of_file(file));
  if (builtins.empty()) builtins.push_back("none");
  std::string identity =
      fmt::format("nvrtc build-id={} builtins={}", identity_of_file(path), fmt::join(builtins, ","));
  if (!append_flags.empty()) identity += fmt::format(" append-flags=\"{}\"", one_line(append_flags));
  return identity;
}

}  // namespace jitsmith
