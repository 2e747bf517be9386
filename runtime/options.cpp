#include <jitsmith/runtime/options.hpp>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include <jitsmith/cache/environment.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

template <class Integer>
void read_number(const char* name, Integer& number) {
  const std::string text = environment(name).value_or("");
  if (text.empty()) return;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0)
    throw InvalidRequest(fmt::format("{}={} is not a number of at least 0; set one or unset it", name, text));
}

// One of two words, or unset: whether it is the second.
bool read_choice(const char* name, std::string_view first, std::string_view second) {
  const std::string text = environment(name).value_or("");
  if (!text.empty() && text != first && text != second)
    throw InvalidRequest(
        fmt::format("{}={} is not allowed; set it to {} or {}, or unset it", name, text, first, second));
  return text == second;
}

std::map<std::string, std::string> read_forced(std::string_view text) {
  std::map<std::string, std::string> forced;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size())
      throw InvalidRequest(fmt::format(
          "JITSMITH_FORCE item '{}' is not of the form op=variant:parameter=value,...; write it so", item));
    forced[std::string(item.substr(0, equals))] = item.substr(equals + 1);
  }
  return forced;
}

}  // namespace

Options Options::from_environment() {
  Options options;
  if (read_choice("JITSMITH_TARGET", "cuda", "host")) options.executor = Executor::host;
  if (read_choice("JITSMITH_POLICY", "compile", "cached_only")) options.policy = Policy::cached_only;
  options.driver_path = environment("JITSMITH_DRIVER");
  read_number("JITSMITH_DEVICE", options.device);
  read_number("JITSMITH_HOST_SEED", options.host_seed);
  options.cache = directory_request_from_environment();
  options.nvrtc = nvrtc_search_from_environment();
  options.host_compiler.compiler = environment("JITSMITH_HOST_CXX").value_or("");
  if (const auto path = environment("PATH")) options.host_compiler.search_path = *path;
  if (const auto temp = environment("TMPDIR")) options.host_compiler.temp_directory = *temp;
  options.template_folder = environment("JITSMITH_TEMPLATES").value_or("");
  options.tuning_table = environment("JITSMITH_TABLE").value_or("");
  options.forced = read_forced(environment("JITSMITH_FORCE").value_or(""));
  return options;
}

}  // namespace jitsmith
