// jitsmith demo: every op once, from a request to a checked result.
#include <memory>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/array_run.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/statistics.hpp>
#include <jitsmith/tools/target_option.hpp>

namespace jitsmith {
namespace {

constexpr std::uint64_t k_seed = 1;

bool run_one(Engine& engine, const Op& op) {
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = engine.plan({op.name, op.arrays->demo});
  const Milliseconds planning = std::chrono::steady_clock::now() - start;
  if (!plan) {
    print(fmt::format("{:<18} declined: {}\n", op.name, plan.reason()));
    return false;
  }
  const PlanState& state = plan.state();
  const Arrays inputs = op.arrays->make_inputs(state.request, k_seed);
  const ArrayRun run = run_on_arrays(op, plan, engine.current_device(), inputs);
  const CheckResult check = op.arrays->check(state.request, inputs, run.outputs);
  print(fmt::format("{:<18} {:<12} {:<15} {:>9.1f} {:>9.3f}  {}: {}\n", op.name,
                    state.selection.variant == nullptr ? "-" : state.selection.variant->name,
                    describe(state.source), planning.count(), run.launch.count(),
                    check.passed ? "passed" : "FAILED", check.summary));
  return check.passed;
}

int demo(Options options, const std::string& target) {
  const EventSink events = options.events;
  Engine engine(on_target(std::move(options), target));
  const StatisticsAtEnd statistics(engine.cache(), events);
  const DeviceFacts& device = engine.current_device().facts();
  print(fmt::format("on {} ({})\n\n", device.name, device.target.arch));
  print(fmt::format("{:<18} {:<12} {:<15} {:>9} {:>9}  {}\n", "op", "variant", "code", "plan ms", "run ms",
                    "check"));
  bool all_passed = true;
  for (const Op* op : engine.ops())
    if (op->arrays && !run_one(engine, *op)) all_passed = false;
  return all_passed ? k_success : k_failure;
}

}  // namespace

SubCommand demo_command(Arguments& app) {
  Arguments arguments = app.sub_command("demo", "Plan, compile, run and check one request of every op");
  const auto target = std::make_shared<std::string>("auto");
  add_target_option(arguments, *target);
  return {arguments, [target](Options options) { return demo(std::move(options), *target); }};
}

}  // namespace jitsmith
