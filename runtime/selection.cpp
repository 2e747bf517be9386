#include <jitsmith/runtime/selection.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

std::string owner_name(const Op& op, const Variant& variant) {
  return fmt::format("{} variant {}", op.name, variant.name);
}

const Variant& variant_of(const Op& op, const std::string& name) {
  if (const Variant* variant = op.variant(name)) return *variant;
  std::vector<std::string_view> names;
  for (const Variant& variant : op.variants) names.push_back(variant.name);
  throw InvalidRequest(
      fmt::format("{} has no variant '{}'; give one of {}", op.name, name, fmt::join(names, ", ")));
}

Params parse_params(const Op& op, const Variant& variant, const NamedTexts& texts) {
  Params params;
  for (const auto& [name, text] : texts)
    params.set(name, variant.kernel.schema.parse(name, text, owner_name(op, variant)));
  return params;
}

// Why `params` must not be used: the variant's own reason, or a launch that the device does not allow.
std::string misfit_of(const Variant& variant, const Params& request, const Params& params,
                      const DeviceFacts& device) {
  constexpr std::uint64_t k_max_threads = 1024;
  if (variant.misfit)
    if (std::string reason = variant.misfit(request, params, device); !reason.empty()) return reason;
  const LaunchShape shape = variant.shape(request, params);
  if (shape.dynamic_shared_bytes > device.shared_bytes_per_block)
    return fmt::format("it needs {} bytes of shared memory and the device allows {}",
                       shape.dynamic_shared_bytes, device.shared_bytes_per_block);
  if (shape.cluster > 1 && !has_clusters(device))
    return fmt::format("its clusters of {} blocks need sm_90 or later, and the device is {}", shape.cluster,
                       device.target.arch);
  if (const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
      threads > k_max_threads)
    return fmt::format("its {} threads are more than the {} of a block", threads, k_max_threads);
  return {};
}

// Every candidate of every variant with its cost, those that fit first, the cheapest first; ties keep the
// stable order.
std::vector<Candidate> ranked_candidates(const Op& op, const Params& request, const DeviceFacts& device) {
  std::vector<Candidate> all;
  for (const Variant& variant : op.variants) {
    if (!variant.candidates) continue;
    for (const Params& params : variant.candidates(request, device)) {
      Candidate candidate{.variant = variant.name, .params = variant.complete(params)};
      candidate.why_not = misfit_of(variant, request, candidate.params, device);
      if (candidate.why_not.empty() && variant.cost_us)
        candidate.cost_us = variant.cost_us(request, candidate.params, device);
      all.push_back(std::move(candidate));
    }
  }
  std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
    if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
    return a.why_not.empty() && a.cost_us.value_or(0) < b.cost_us.value_or(0);
  });
  return all;
}

bool agrees(const Params& params, const Params& wanted) {
  return std::ranges::all_of(wanted.items(), [&](const auto& item) {
    const Value* value = params.find(item.first);
    return value != nullptr && *value == item.second;
  });
}

// What the caller forces, and for the rest what suits it best: the parameters of the best candidate with
// which the whole is allowed, else those of the generic variant.
Params forced_params(const Op& op, const Variant& variant, const Params& forced, const Params& request,
                     const DeviceFacts& device, const std::vector<Candidate>& candidates) {
  const auto filled_from = [&](Params params) {
    for (const auto& [name, value] : forced.items()) params.set(name, value);
    return variant.kernel.schema.complete(params, owner_name(op, variant));
  };
  for (const Candidate& candidate : candidates) {
    if (candidate.variant != variant.name || !candidate.why_not.empty()) continue;
    if (agrees(candidate.params, forced)) return candidate.params;
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.variant != variant.name || !candidate.why_not.empty()) continue;
    try {
      Params params = filled_from(candidate.params);
      if (misfit_of(variant, request, params, device).empty()) return params;
    } catch (const InvalidRequest&) {
      // The schema does not allow the two together: the next one may do.
    }
  }
  const Params params =
      filled_from(op.generic_variant == variant.name ? op.generic_params(request) : Params());
  if (const std::string reason = misfit_of(variant, request, params, device); !reason.empty())
    throw InvalidRequest(
        fmt::format("{} can't be forced to {}:{} here, because {}; choose others or leave it out", op.name,
                    variant.name, to_string(params), reason));
  return params;
}

struct Choice {
  const Variant* variant;
  Params params;
  SelectionSource source;
  std::string reason;
};

// The table's row for the request, if there is one that can be used; why not goes to `notes`.
std::optional<Choice> from_table(const Op& op, const Params& request, const DeviceFacts& device,
                                 const TuningTable* table, SelectionSource source,
                                 std::vector<std::string>& notes) {
  const TableRow* row = table == nullptr ? nullptr : table->match(op.name, request, device);
  if (row == nullptr) return std::nullopt;
  try {
    const Variant& variant = variant_of(op, row->variant);
    Params params =
        variant.kernel.schema.complete(parse_params(op, variant, row->params), owner_name(op, variant));
    if (const std::string misfit = misfit_of(variant, request, params, device); !misfit.empty())
      throw InvalidRequest(fmt::format("{}:{} does not fit: {}", variant.name, to_string(params), misfit));
    std::string reason = row->measured ? fmt::format("measured {} us against {} us of {}", row->measured->us,
                                                     row->measured->replaced_us, row->measured->replaced)
                                       : std::string("published, not measured here");
    return Choice{&variant, std::move(params), source, std::move(reason)};
  } catch (const InvalidRequest& unusable) {  // a row made for another version of the schema, say
    notes.push_back(fmt::format("the row of the {} is passed over: {}", name_of(source), unusable.what()));
    return std::nullopt;
  }
}

Choice choose(const Op& op, const Params& request, const DeviceFacts& device, const SelectionInputs& inputs,
              const std::vector<Candidate>& candidates, std::vector<std::string>& notes) {
  const bool generic_forced = inputs.forced && inputs.forced->generic();
  if (inputs.forced && !generic_forced) {
    const Variant& variant = variant_of(op, inputs.forced->variant);
    const Params forced = parse_params(op, variant, inputs.forced->params);
    return {&variant, forced_params(op, variant, forced, request, device, candidates),
            SelectionSource::forced, "forced by the caller"};
  }
  if (!generic_forced) {
    if (auto row = from_table(op, request, device, inputs.user_table, SelectionSource::user_table, notes))
      return *std::move(row);
    if (auto row =
            from_table(op, request, device, inputs.shipped_table, SelectionSource::shipped_table, notes))
      return *std::move(row);
    if (!candidates.empty() && candidates.front().why_not.empty()) {
      const Candidate& best = candidates.front();
      return {op.variant(best.variant), best.params, SelectionSource::heuristic,
              best.cost_us ? fmt::format("the cost model expects {:.2f} us, the least of {} candidates",
                                         *best.cost_us, candidates.size())
                           : std::string("the first candidate")};
    }
  }
  const Variant& generic = variant_of(op, op.generic_variant);
  Params params = generic.complete(op.generic_params(request));
  if (const std::string reason = misfit_of(generic, request, params, device); !reason.empty())
    throw InvalidRequest(
        fmt::format("{} {} can't run here: its generic variant {}:{} does not fit, because {}", op.name,
                    to_string(request), generic.name, to_string(params), reason));
  return {&generic, std::move(params), SelectionSource::generic,
          generic_forced ? "forced by the caller" : "no candidate fits the request"};
}

}  // namespace

ForcedChoice ForcedChoice::parse(std::string_view text) {
  const auto fail = [&] {
    throw InvalidRequest(
        fmt::format("variant '{}' is not of the form NAME or NAME:parameter=value,...; write it so", text));
  };
  ForcedChoice forced;
  const std::size_t colon = text.find(':');
  forced.variant = text.substr(0, colon);
  if (forced.variant.empty() || (forced.generic() && colon != std::string_view::npos)) fail();
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (colon != std::string_view::npos && rest.empty()) fail();
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) fail();
    for (const auto& given : forced.params)
      if (given.first == item.substr(0, equals))
        throw InvalidRequest(fmt::format("variant '{}' gives {} twice; give it once", text, given.first));
    forced.params.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return forced;
}

std::string to_string(const ForcedChoice& forced) {
  std::string text = forced.variant;
  for (const auto& [name, value] : forced.params)
    text += fmt::format("{}{}={}", text.size() == forced.variant.size() ? ':' : ',', name, value);
  return text;
}

Selection select(const Op& op, const Params& request, const DeviceFacts& device,
                 const SelectionInputs& inputs) {
  Selection selection;
  if (op.contract) selection.verdict = op.contract(request, device);
  if (selection.verdict.kind != Verdict::serve) return selection;

  selection.candidates = ranked_candidates(op, request, device);
  Choice choice = choose(op, request, device, inputs, selection.candidates, selection.notes);
  selection.variant = choice.variant;
  selection.params = std::move(choice.params);
  selection.shape = choice.variant->shape(request, selection.params);
  selection.source = choice.source;
  selection.reason = std::move(choice.reason);

  // Say of every other candidate why it lost.
  const std::string lost = selection.source == SelectionSource::heuristic
                               ? "costs no less by the model"
                               : fmt::format("{} decided", name_of(selection.source));
  for (Candidate& candidate : selection.candidates)
    if (candidate.why_not.empty() &&
        !(candidate.variant == choice.variant->name && candidate.params == selection.params))
      candidate.why_not = lost;
  return selection;
}

std::string_view name_of(SelectionSource source) {
  constexpr std::string_view names[] = {"forced choice", "user table", "shipped table", "heuristic",
                                        "generic"};
  return names[static_cast<std::size_t>(source)];
}

std::string explain(const Op& op, const Params& request, const DeviceFacts& device,
                    const Selection& selection) {
  std::string text = fmt::format("request   {} {}\ndevice    {} ({}, {} multiprocessors)\n", op.name,
                                 to_string(request), device.name, device.target.arch, device.multiprocessors);
  if (selection.verdict.kind == Verdict::decline)
    return text + fmt::format("declined  {}\n", selection.verdict.reason);
  if (selection.verdict.kind == Verdict::nothing_to_do)
    return text + "nothing   the output is empty; no launch\n";
  const auto& [gx, gy, gz] = selection.shape.grid;
  text += fmt::format(
      "winner    {}:{}\nsource    {}: {}\nlaunch    grid {}x{}x{}{}, {} threads, {} bytes of dynamic shared "
      "memory\n",
      selection.variant->name, to_string(selection.params), name_of(selection.source), selection.reason, gx,
      gy, gz,
      selection.shape.cluster > 1 ? fmt::format(" in clusters of {}", selection.shape.cluster)
                                  : std::string(),
      selection.shape.block[0] * selection.shape.block[1] * selection.shape.block[2],
      selection.shape.dynamic_shared_bytes);
  for (const std::string& note : selection.notes) text += fmt::format("note      {}\n", note);
  for (const Candidate& candidate : selection.candidates)
    text +=
        fmt::format("{} {:>9}  {}:{}{}{}\n", candidate.why_not.empty() ? "*" : " ",
                    candidate.cost_us ? fmt::format("{:.2f} us", *candidate.cost_us) : "-", candidate.variant,
                    to_string(candidate.params), candidate.why_not.empty() ? "" : "  ", candidate.why_not);
  return text;
}

}  // namespace jitsmith
