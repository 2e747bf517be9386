#include <jitsmith/tools/target_option.hpp>

#include <charconv>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/engine.hpp>

namespace jitsmith {

void add_target_option(Arguments& arguments, std::string& text) {
  arguments.text("--target", text, "TARGET",
                 "host, cuda, cuda:N, or auto: the GPU if there is one, else the host");
}

Options on_target(Options options, const std::string& text) {
  if (text == "auto") {
    if (options.executor == Executor::cuda && !find_gpu(options).facts) options.executor = Executor::host;
    return options;
  }
  if (text == "host") {
    options.executor = Executor::host;
    return options;
  }
  options.executor = Executor::cuda;
  if (text == "cuda") return options;
  constexpr std::string_view prefix = "cuda:";
  const char* const end = text.data() + text.size();
  if (text.starts_with(prefix)) {
    const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, options.device);
    if (error == std::errc{} && stop == end && options.device >= 0) return options;
  }
  throw InvalidRequest(fmt::format("--target '{}' is unknown; give host, cuda, cuda:N or auto", text));
}

Gpu find_gpu(const Options& options) {
  // An engine of its own: only the driver is asked, no cache is opened and nothing is said.
  Options probe;
  probe.driver_path = options.driver_path;
  probe.device = options.device;
  probe.cache.enabled = false;
  try {
    return {Engine(std::move(probe)).current_device().facts(), {}};
  } catch (const DriverError& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace jitsmith
