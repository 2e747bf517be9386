// Op: what a kernel family must say of itself. The built-in families and a user's own are registered alike
// (Engine::add); the engine, the cache and the tool know nothing else of them.
//
// All functions are pure: (request, parameters, device facts) in, a decision out. `request` is always
// complete, as Schema::complete returned it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <jitsmith/jit/kernel_template.hpp>
#include <jitsmith/runtime/arrays.hpp>
#include <jitsmith/runtime/device_facts.hpp>
#include <jitsmith/runtime/launch_shape.hpp>

namespace jitsmith {

// Whether a request is one that the family serves.
struct Verdict {
  enum Kind { serve, nothing_to_do, decline } kind = serve;
  std::string reason;  // of a decline: one sentence
};

// One way to compute an op: a template, the parameters worth trying, what they cost.
struct Variant {
  std::string name;
  std::string
      summary;  // for `jitsmith show`: how it computes, and its order of reduction where that fixes bits
  KernelTemplate kernel;

  // The parameters that the order of summation depends on: all others leave every bit as it is.
  std::vector<std::string> order;

  // The template parameters to choose from for this request on this device, in stable order. Defaults are
  // filled in.
  std::function<std::vector<Params>(const Params& request, const DeviceFacts&)> candidates;

  // Why `params` must not be used for `request` here ("" if they may). It covers more than the candidates:
  // also what a caller forces and what a table row says.
  std::function<std::string(const Params& request, const Params& params, const DeviceFacts&)> misfit;

  // Estimated time on the device in microseconds. Without it the first candidate wins.
  std::function<double(const Params& request, const Params& params, const DeviceFacts&)> cost_us;

  std::function<LaunchShape(const Params& request, const Params& params)> shape;

  // `params` as the template's schema completes them; throws InvalidRequest that names the variant.
  Params complete(const Params& params) const { return kernel.schema.complete(params, "variant " + name); }
};

struct Op {
  std::string name;
  std::string summary;
  Schema request;                 // what a caller asks for
  std::vector<Variant> variants;  // the first is preferred at equal cost

  // Parameters of the *generic* variant: right for every request in the contract, one binary for many
  // requests.
  std::string generic_variant;
  std::function<Params(const Params& request)> generic_params;

  // Whether the request is inside the contract. Without it every request is served.
  std::function<Verdict(const Params& request, const DeviceFacts&)> contract;

  // How the op runs on arrays: for `jitsmith run`, `demo` and `tune`. Optional for a user's op.
  std::optional<ArrayInterface> arrays;

  const Variant* variant(std::string_view variant_name) const {
    for (const Variant& v : variants)
      if (v.name == variant_name) return &v;
    return nullptr;
  }
};

}  // namespace jitsmith
