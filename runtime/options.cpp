#include <jitsmith/runtime/options.hpp>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include <jitsmith/cache/environment.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

constexpr std::int64_t k_longest_lock_wait_ms = 24 * 3600 * 1000;  // a day: steady time plus it must not wrap

template <class Integer>
void read_number(const char* name, Integer& number) {
  const std::string text = environment(name).value_or("");
  if (text.empty()) return;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0)
    throw InvalidRequest(fmt::format("{}={} is not a number of at least 0; set one or unset it", name, text));
}

void read_bytes(const char* name, std::uint64_t& bytes) {
  const std::string text = environment(name).value_or("");
  if (text.empty()) return;
  const auto number = bytes_from_text(text);
  if (!number)
    throw InvalidRequest(
        fmt::format("{}={} is not a number of bytes, perhaps with K, M, G or T after it; set one or unset it",
                    name, text));
  bytes = *number;
}

std::vector<std::string> read_paths(const char* name) {
  std::vector<std::string> paths;
  const std::string text = environment(name).value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
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

std::optional<std::uint64_t> bytes_from_text(std::string_view text) {
  constexpr std::string_view k_units = "KMGT";
  const std::size_t unit = text.empty() ? std::string_view::npos : k_units.find(text.back());
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  const char* const digits_end = text.data() + text.size() - (shift > 0 ? 1 : 0);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), digits_end, number);
  if (error != std::errc{} || end != digits_end || number > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return number << shift;
}

Options Options::from_environment() {
  Options options;
  if (read_choice("JITSMITH_TARGET", "cuda", "host")) options.executor = Executor::host;
  if (read_choice("JITSMITH_POLICY", "compile", "cached_only")) options.policy = Policy::cached_only;
  options.driver_path = environment("JITSMITH_DRIVER");
  read_number("JITSMITH_DEVICE", options.device);
  read_number("JITSMITH_HOST_SEED", options.host_seed);
  read_choice("JITSMITH_CACHE", "1", "0");  // anything else would be on, which its writer may not have meant
  options.cache = directory_request_from_environment();
  read_bytes("JITSMITH_CACHE_MAX_BYTES", options.cache_limits.max_bytes);
  read_number("JITSMITH_CACHE_MAX_ENTRIES", options.cache_limits.max_entries);
  auto lock_wait_ms = options.lock_wait.count();
  read_number("JITSMITH_LOCK_WAIT_MS", lock_wait_ms);
  options.lock_wait = std::chrono::milliseconds(std::min<std::int64_t>(lock_wait_ms, k_longest_lock_wait_ms));
  options.bundles = read_paths("JITSMITH_BUNDLES");
  options.remote.url = environment("JITSMITH_REMOTE").value_or("");
  if (read_choice("JITSMITH_REMOTE_MODE", "read_write", "read_only"))
    options.remote.mode = RemoteMode::read_only;
  options.record = environment("JITSMITH_RECORD").value_or("");
  options.cold = read_choice("JITSMITH_COLD", "0", "1");
  options.nvrtc = nvrtc_search_from_environment();
  options.host_compiler.compiler = environment("JITSMITH_HOST_CXX").value_or("");
  if (const auto path = environment("PATH")) options.host_compiler.search_path = *path;
  if (const auto temp = environment("TMPDIR")) options.host_compiler.temp_directory = *temp;
  options.template_folder = environment("JITSMITH_TEMPLATES").value_or("");
  options.tuning_table = environment("JITSMITH_TABLE").value_or("");
  options.forced = read_forced(environment("JITSMITH_FORCE").value_or(""));
  return options;
}

CacheOptions Options::cache_options() const {
  if (!cold)
    return {.directory = cache,
            .limits = cache_limits,
            .lock_wait = lock_wait,
            .bundles = bundles,
            .remote = remote,
            .look_only = look_only,
            .events = events};
  CacheOptions none{.events = events};
  none.directory.enabled = false;
  none.directory.disabled_reason =
      "every tier of the cache is turned off by the cold mode; unset JITSMITH_COLD to keep compiled kernels";
  return none;
}

}  // namespace jitsmith
