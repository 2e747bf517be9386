#include <jitsmith/tools/warm_set.hpp>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

constexpr std::int64_t k_largest_sample = 64;

std::vector<Value> values_of(const ParamSpec& spec) {
  std::vector<Value> values;
  switch (spec.kind) {
    case ParamKind::integer:
      for (std::int64_t value = 1; value <= k_largest_sample; value *= 2)
        if (spec.integers.contains(value)) values.emplace_back(value);
      break;
    case ParamKind::boolean:
      values = {false, true};
      break;
    case ParamKind::choice:
      values.assign(spec.choices.begin(), spec.choices.end());
      break;
    case ParamKind::type:
      values.assign(spec.types.begin(), spec.types.end());
      break;
  }
  return values;
}

// Each request with each value of the parameter.
std::vector<Params> product(const std::vector<Params>& requests, const ParamSpec& spec) {
  std::vector<Params> all;
  for (const Value& value : values_of(spec))
    for (const Params& request : requests) all.emplace_back(request).set(spec.name, value);
  return all;
}

}  // namespace

std::string to_string(const Specialisation& s) {
  return fmt::format("{} {} {}:{}", s.target.arch, s.op, s.variant->name, to_string(s.params));
}

std::vector<Params> sample_requests(const Op& op) {
  if (!op.arrays) return {};
  std::vector<Params> all{op.arrays->demo};
  for (const ParamSpec& spec : op.request.params())
    if (spec.kind != ParamKind::integer) all = product(all, spec);
  const std::vector<Params> with_demo_extents = all;
  for (const ParamSpec& spec : op.request.params())
    if (spec.kind == ParamKind::integer)
      std::ranges::move(product(with_demo_extents, spec), std::back_inserter(all));

  std::vector<Params> allowed;
  for (const Params& request : all) try {
      allowed.push_back(op.request.complete(request, op.name));
    } catch (const InvalidRequest&) {
      // a combination that the schema's rules exclude
    }
  return allowed;
}

void WarmSet::insert(Specialisation specialisation) {
  if (known_.insert(to_string(specialisation)).second) items_.push_back(std::move(specialisation));
}

void WarmSet::add(const Request& request, const DeviceFacts& device,
                  const std::optional<ForcedChoice>& forced) {
  const Selection selection = engine_.explain(request, device, forced);
  if (selection.verdict.kind == Verdict::serve)
    insert({request.op, selection.variant, selection.params, device.target});
  else
    ++without_kernel_;
}

void WarmSet::add_all(const Op& op, const DeviceFacts& device) {
  for (const Params& request : sample_requests(op)) {
    if (op.contract && op.contract(request, device).kind != Verdict::serve) continue;
    for (const Variant& variant : op.variants) {
      if (!variant.candidates) continue;
      for (Params& params : variant.candidates(request, device))
        if (!variant.misfit || variant.misfit(request, params, device).empty())
          insert({op.name, &variant, std::move(params), device.target});
    }
    insert({op.name, op.variant(op.generic_variant), op.generic_params(request), device.target});
  }
}

}  // namespace jitsmith
