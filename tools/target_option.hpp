// --target: where to run.
#pragma once

#include <optional>
#include <string>

#include <jitsmith/runtime/device_facts.hpp>
#include <jitsmith/runtime/options.hpp>
#include <jitsmith/tools/arguments.hpp>

namespace jitsmith {

void add_target_option(Arguments& arguments, std::string& text);

// The same options for `text`: host, cuda, cuda:N, or auto: what JITSMITH_TARGET says, and the host target
// when that is a GPU and there is none. Throws InvalidRequest for another text.
Options on_target(Options options, const std::string& text);

// The GPU that `options` mean, or one sentence why there is none.
struct Gpu {
  std::optional<DeviceFacts> facts;
  std::string why_not;
};
Gpu find_gpu(const Options& options);

}  // namespace jitsmith
