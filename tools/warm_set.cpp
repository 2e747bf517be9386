#include <jitsmith/tools/warm_set.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

// Tiles depend on small extents, and what is worth its registers on large ones.
constexpr std::int64_t k_sample_extents[] = {1, 2, 4, 8, 64, 1024, 16384, 65536};

std::vector<Value> values_of(const ParamSpec& spec) {
  std::vector<Value> values;
  switch (spec.kind) {
    case ParamKind::integer:
      for (const std::int64_t extent : k_sample_extents)
        if (spec.integers.contains(extent)) values.emplace_back(extent);
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

// Each request with each value of each parameter that is an integer, or is not.
std::vector<Params> product(std::vector<Params> requests, const Schema& schema, bool integers) {
  for (const ParamSpec& spec : schema.params()) {
    if ((spec.kind == ParamKind::integer) != integers) continue;
    std::vector<Params> all;
    for (const Value& value : values_of(spec))
      for (const Params& request : requests) all.emplace_back(request).set(spec.name, value);
    requests = std::move(all);
  }
  return requests;
}

// Those that the schema's rules and the contract admit, complete.
std::vector<Params> served(const Op& op, const std::vector<Params>& requests, const DeviceFacts& device) {
  std::vector<Params> result;
  for (const Params& request : requests) try {
      Params complete = op.request.complete(request, op.name);
      if (!op.contract || op.contract(complete, device).kind == Verdict::serve)
        result.push_back(std::move(complete));
    } catch (const InvalidRequest&) {
      // a combination that a rule excludes
    }
  return result;
}

}  // namespace

std::vector<Params> sample_requests(const Op& op, const DeviceFacts& device) {
  if (!op.arrays) return {};
  const std::vector<Params> demos = served(op, product({op.arrays->demo}, op.request, false), device);
  return served(op, product(demos, op.request, true), device);
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

void WarmSet::add(const KernelRecord& record) {
  insert(specialisation_of(engine_, record));
}

void WarmSet::add(const KernelRecord& record, const DeviceFacts& device) {
  if (device.target.arch == record.arch) return add(record);
  if (!record.request)
    throw InvalidRequest(fmt::format("the record names no request to choose for {} by; warm it for {} alone",
                                     device.target.arch, record.arch));
  add({record.op, typed(*record.request, engine_.op(record.op).request, record.op)}, device);
}

void WarmSet::add_all(const Op& op, const DeviceFacts& device) {
  for (const Params& request : sample_requests(op, device)) {
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
