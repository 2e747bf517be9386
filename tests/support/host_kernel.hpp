// Compiles and loads a kernel text for the host target, with the device headers of the source tree.
#pragma once

#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/runtime/host_executor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace jitsmith::test {

inline SpecializedSource host_source(std::string text, std::string instantiation,
                                     std::string path = "probe.cu") {
  SpecializedSource source{
      .main = {std::move(path), std::move(text)}, .headers = {}, .instantiation = std::move(instantiation)};
  const std::filesystem::path folder =
      std::filesystem::path(JITSMITH_TEST_SOURCE_DIR) / "templates" / "device";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path());
    source.headers.push_back({"device/" + file.path().filename().string(),
                              std::string(std::istreambuf_iterator<char>(stream), {})});
  }
  std::ranges::sort(source.headers, {}, &SourceFile::path);
  return source;
}

inline Binary compile_for_host(std::string text, std::string instantiation) {
  return HostCompiler().compile(host_source(std::move(text), std::move(instantiation)), "host");
}

// "probe.cu:12": the line of `text` that holds `part`.
inline std::string line_of(std::string_view text, std::string_view part) {
  const auto lines =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(part)), '\n');
  return "probe.cu:" + std::to_string(lines);
}

// Launches with the addresses of `params` as arguments.
template <class... Params>
void launch(const LoadedKernel& kernel, const LaunchShape& shape, Params... params) {
  std::array<void*, sizeof...(Params)> args{&params...};
  kernel.launch(nullptr, shape, args.data());
}

}  // namespace jitsmith::test
