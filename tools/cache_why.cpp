// jitsmith cache why: whether the kernel of a request is cached, and if not, how the nearest one differs.
#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/key_fields.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/statistics.hpp>

namespace jitsmith {
namespace {

DeviceFacts facts_for(const WhyArgs& args) {
  if (args.arch.empty() == args.device.empty())
    throw InvalidRequest("why needs one architecture; give --arch sm_90a or --device h200");
  return args.device.empty() ? device_profile_for_arch(args.arch) : device_profile(args.device);
}

std::string_view tier_of(BinarySource source) {
  return source == BinarySource::disk ? "directory" : to_string(source);
}

Json json_of(const Lookup& lookup, const Selection& selection) {
  const bool known = lookup.why_no_toolchain.empty();
  const auto toolchain = find_field(key_fields(lookup.key.text), "toolchain");
  Json json{{"kernel", lookup.kernel},
            {"variant", selection.variant->name},
            {"params", json_of(selection.params)},
            {"key", known ? Json(lookup.key.digest.hex()) : Json()},
            {"toolchain", known && toolchain ? Json(*toolchain) : Json()}};
  if (!known) json["why_no_toolchain"] = lookup.why_no_toolchain;
  json["cached"] = lookup.source == BinarySource::none ? Json() : Json(tier_of(lookup.source));
  json["cached_of_another_toolchain"] =
      lookup.other_toolchain == BinarySource::none ? Json() : Json(tier_of(lookup.other_toolchain));
  if (lookup.nearest != BinarySource::none) {
    Json differences = Json::array();
    for (const Lookup::Difference& difference : lookup.differences)
      differences.push_back(
          {{"field", difference.field}, {"wanted", difference.wanted}, {"had", difference.had}});
    json["nearest"] = {{"tier", tier_of(lookup.nearest)}, {"differences", std::move(differences)}};
  }
  json["holdings"] = lookup.holdings;
  return json;
}

void print_comparison(const Lookup& lookup, const Selection& selection) {
  const bool known = lookup.why_no_toolchain.empty();
  print(fmt::format("kernel    {}\nvariant   {}:{}\n", lookup.kernel, selection.variant->name,
                    to_string(selection.params)));
  print(fmt::format("key       {}\n", known ? lookup.key.digest.hex()
                                            : "unknown, for its toolchain is: " + lookup.why_no_toolchain));
  if (lookup.source != BinarySource::none)
    return print(fmt::format("cached    yes, in the {}\n", tier_of(lookup.source)));
  if (lookup.other_toolchain != BinarySource::none)
    print(fmt::format("cached    in the {}, compiled by {}: served under JITSMITH_POLICY=cached_only only\n",
                      tier_of(lookup.other_toolchain),
                      known ? "another toolchain than the one here" : "a toolchain that is not here"));
  else
    print("cached    no\n");
  print(fmt::format("why       {}\n", lookup.holdings));
  for (const Lookup::Difference& difference : lookup.differences)
    print(fmt::format("differs   {}\n            wanted {}\n            had    {}\n", difference.field,
                      difference.wanted, difference.had));
}

}  // namespace

int cache_why(Options options, const WhyArgs& args, bool as_json) {
  const DeviceFacts device = facts_for(args);
  const bool any_toolchain = options.policy == Policy::cached_only;
  const EventSink events = options.events;
  options.look_only = true;  // a question changes nothing
  Engine engine(std::move(options));
  const StatisticsAtEnd statistics(engine.cache(), events);
  const Op& op = engine.op(args.request.op);
  const Selection selection =
      engine.explain({op.name, args.request.typed(op.request)}, device, args.request.forced());
  if (selection.verdict.kind != Verdict::serve) {
    const std::string reason =
        selection.verdict.reason.empty() ? "there is nothing to compute" : selection.verdict.reason;
    as_json ? print_json({{"kernel", Json()}, {"reason", reason}})
            : print(fmt::format("kernel    none is needed: {}\n", reason));
    return k_success;
  }
  const Lookup lookup = engine.look_up(*selection.variant, selection.params, device.target);
  as_json ? print_json(json_of(lookup, selection)) : print_comparison(lookup, selection);
  const bool served =
      lookup.source != BinarySource::none || (any_toolchain && lookup.other_toolchain != BinarySource::none);
  return served ? k_success : k_failure;
}

}  // namespace jitsmith
