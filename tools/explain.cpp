// jitsmith explain: the whole dispatch decision for one request. Needs no GPU and compiles nothing.
#include <memory>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/request_args.hpp>
#include <jitsmith/tools/target_option.hpp>

namespace jitsmith {
namespace {

struct ExplainArgs {
  RequestArgs request;
  std::string device, arch;
  std::string target = "auto";
  bool json = false;
};

DeviceFacts facts_for(const ExplainArgs& args, const Options& options) {
  if (!args.device.empty() + !args.arch.empty() + (args.target != "auto") > 1)
    throw InvalidRequest("--device, --arch and --target each name where to run; give one of them");
  if (!args.device.empty()) return device_profile(args.device);
  if (!args.arch.empty()) return device_profile_for_arch(args.arch);
  if (args.target == "auto" && options.executor == Executor::cuda)
    return find_gpu(options).facts.value_or(device_profile("h200"));
  const Options there = on_target(options, args.target);
  if (there.executor == Executor::host) return device_profile("host");
  const Gpu gpu = find_gpu(there);
  if (!gpu.facts) throw DriverError(gpu.why_not, -1);
  return *gpu.facts;
}

Json json_of(const Op& op, const Params& request, const DeviceFacts& device, const Selection& selection) {
  constexpr const char* verdicts[] = {"serve", "nothing_to_do", "decline"};
  Json json{
      {"op", op.name},
      {"request", jitsmith::json_of(request)},
      {"device",
       {{"name", device.name}, {"arch", device.target.arch}, {"multiprocessors", device.multiprocessors}}},
      {"verdict", verdicts[selection.verdict.kind]}};
  if (selection.verdict.kind == Verdict::decline) json["reason"] = selection.verdict.reason;
  if (selection.verdict.kind != Verdict::serve) return json;
  json["winner"] = {{"variant", selection.variant->name},
                    {"params", jitsmith::json_of(selection.params)},
                    {"source", name_of(selection.source)},
                    {"reason", selection.reason},
                    {"grid", selection.shape.grid},
                    {"block", selection.shape.block},
                    {"dynamic_shared_bytes", selection.shape.dynamic_shared_bytes}};
  Json& candidates = json["candidates"] = Json::array();
  for (const Candidate& candidate : selection.candidates) {
    Json item{{"variant", candidate.variant}, {"params", jitsmith::json_of(candidate.params)}};
    if (candidate.cost_us) item["cost_us"] = *candidate.cost_us;
    if (!candidate.why_not.empty()) item["why_not"] = candidate.why_not;
    candidates.push_back(std::move(item));
  }
  return json;
}

int explain(Options options, const ExplainArgs& args) {
  const DeviceFacts device = facts_for(args, options);
  options.cold = true;  // nothing is compiled or loaded
  const Engine engine(std::move(options));
  const Op& op = engine.op(args.request.op);
  const Params request = op.request.complete(args.request.typed(op.request), op.name);
  const Selection selection = engine.explain({op.name, request}, device, args.request.forced());
  if (args.json)
    print_json(json_of(op, request, device, selection));
  else
    print(explain(op, request, device, selection));
  return k_success;
}

}  // namespace

SubCommand explain_command(Arguments& app) {
  Arguments arguments = app.sub_command(
      "explain", "Which kernel a request would run, and why; on the GPU at hand or, without one, on an h200");
  const auto args = std::make_shared<ExplainArgs>();
  add_request_args(arguments, args->request, true);
  add_target_option(arguments, args->target);
  arguments.text("--device", args->device, "NAME", "Instead, a named device: h200, b200, a100, ...");
  arguments.text("--arch", args->arch, "ARCH", "Instead, a typical device of an architecture: sm_90a, ...");
  arguments.flag("--json", args->json, "Print JSON");
  return {arguments, [args](Options options) { return explain(std::move(options), *args); }};
}

}  // namespace jitsmith
