// jitsmith run: one op on NumPy files. Nothing is written unless the request is served.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/array_run.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/npy.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/request_args.hpp>
#include <jitsmith/tools/statistics.hpp>
#include <jitsmith/tools/target_option.hpp>

namespace jitsmith {
namespace {

struct RunArgs {
  RequestArgs request;
  std::vector<std::string> inputs;  // name=file
  std::string out;
  std::string target = "auto";
  bool check = false;
};

Arrays read_inputs(const Op& op, const std::vector<std::string>& texts) {
  std::vector<std::string_view> known;
  for (const ArraySpec& spec : op.arrays->inputs) known.push_back(spec.name);

  std::map<std::string, std::string, std::less<>> files;
  for (const std::string& text : texts) {
    auto [name, file] = split_assignment("--in", text);
    if (std::ranges::find(known, name) == known.end())
      throw InvalidRequest(
          fmt::format("{} has no input '{}'; it has {}", op.name, name, fmt::join(known, ", ")));
    if (!files.emplace(name, std::move(file)).second)
      throw InvalidRequest(fmt::format("--in {} is given twice; give it once", name));
  }
  for (const ArraySpec& spec : op.arrays->inputs)
    if (spec.required && !files.contains(spec.name))
      throw InvalidRequest(fmt::format("{} needs the input '{}' ({}); give --in {}=FILE.npy", op.name,
                                       spec.name, spec.meaning, spec.name));

  Arrays inputs;
  for (const auto& [name, file] : files) inputs.emplace(name, read_npy(file));
  return inputs;
}

void write_outputs(const Arrays& outputs, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw InvalidRequest(fmt::format("--out '{}' can't be made a folder ({}); give another", folder.string(),
                                     error.message()));
  for (const auto& [name, array] : outputs) {
    const std::string file = folder / (name + ".npy");
    write_npy(file, array);
    print(fmt::format("wrote     {}: {}\n", file, array.describe()));
  }
}

int run(Options options, const RunArgs& args) {
  const EventSink events = options.events;
  Engine engine(on_target(std::move(options), args.target));
  const StatisticsAtEnd statistics(engine.cache(), events);
  const Op& op = engine.op(args.request.op);
  if (!op.arrays)
    throw InvalidRequest(fmt::format("{} does not run on arrays; launch its plans from a program", op.name));
  const Params settings = args.request.typed(op.request);
  const Arrays inputs = read_inputs(op, args.inputs);

  const auto start = std::chrono::steady_clock::now();
  const Plan plan =
      engine.plan({op.name, op.arrays->make_request(inputs, settings)}, nullptr, args.request.forced());
  const Milliseconds planning = std::chrono::steady_clock::now() - start;
  if (!plan) {
    complain(fmt::format("declined: {}", plan.reason()));
    return k_wrong_request;
  }
  const PlanState& state = plan.state();
  Device& device = engine.current_device();
  const ArrayRun result = run_on_arrays(op, plan, device, inputs);

  print(fmt::format("request   {} {}\n", op.name, to_string(state.request)));
  if (state.kernel != nullptr)
    print(fmt::format("kernel    {}:{} for {}, {} in {:.1f} ms\nrun       {:.3f} ms on {}\n",
                      state.selection.variant->name, to_string(state.selection.params),
                      device.facts().target.arch, describe(state.source), planning.count(),
                      result.launch.count(), device.facts().name));
  write_outputs(result.outputs, args.out);
  if (!args.check) return k_success;
  const CheckResult check = op.arrays->check(state.request, inputs, result.outputs);
  print(fmt::format("check     {}: {}\n", check.passed ? "passed" : "FAILED", check.summary));
  return check.passed ? k_success : k_failure;
}

}  // namespace

SubCommand run_command(Arguments& app) {
  Arguments arguments = app.sub_command("run", "Run an op on NumPy files; bf16 is stored as uint16");
  const auto args = std::make_shared<RunArgs>();
  add_request_args(arguments, args->request, true);
  arguments.repeated("--in", args->inputs, "NAME=FILE.npy",
                     "An input array; `jitsmith show OP` names them; may be repeated");
  arguments.required("--out", args->out, "DIR",
                     "The folder for the outputs, NAME.npy each; made when missing");
  add_target_option(arguments, args->target);
  arguments.flag("--check", args->check, "Compare the outputs with the reference");
  return {arguments, [args](Options options) { return run(std::move(options), *args); }};
}

}  // namespace jitsmith
