// jitsmith warm: fills the cache, or a bundle, for devices that need not be here. A second run goes on where
// the first one ended.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/temp_directory.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/file_argument.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/private_cache.hpp>
#include <jitsmith/tools/statistics.hpp>
#include <jitsmith/tools/warm_args.hpp>
#include <jitsmith/tools/warm_report.hpp>

namespace jitsmith {
namespace {

Options for_warming(Options options, bool dry_run) {
  // What another compiler made would not serve a program that may compile, so it is no reason not to warm. A
  // dry run asks what a program under the user's own policy would find.
  options.any_toolchain = dry_run && options.policy == Policy::cached_only;
  options.look_only = dry_run;
  // A production environment says cached_only, and warming is how it comes to have what it needs: the workers
  // compile whatever it says, and this process looks only.
  options.policy = Policy::cached_only;
  options.record.clear();  // what is warmed was not asked for by a program
  return options;
}

Progress::Form progress_form(const WarmArgs& args) {
  if (args.json) return Progress::Form::none;
  return stdout_is_terminal() ? Progress::Form::bar : Progress::Form::lines;
}

void tell_of_workers(const Options& options, const WarmSet& set, const WarmRun& run) {
  if (!options.events) return;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    const WarmResult& result = run.results[i];
    if (result.outcome == WarmOutcome::compiled)
      options.events(
          {EventLevel::info, "compile",
           fmt::format("compiled {} in {:.0f} ms", to_string(set.items()[i]), result.milliseconds)});
    if (result.outcome != WarmOutcome::failed && !result.complaints.empty())
      options.events({EventLevel::info, "warm.stderr", result.complaints});
  }
  if (run.peak_memory_bytes > 0)
    options.events({EventLevel::info, "warm.memory",
                    fmt::format("a worker or its compiler took up to {}", size_text(run.peak_memory_bytes))});
}

// What is left once it is known what is wanted.
int warm_set(Engine& chooser, const WarmSet& set, WarmTrouble trouble, const WarmArgs& args,
             StopSignals& signals) {
  Options options = chooser.options();
  const bool usable = chooser.cache().state().status == DirectoryStatus::usable;

  // Of the workers, which may be killed in the middle of a compile: what they leave goes with it. Without one
  // they make their own; only host compiles need any.
  const bool private_cache = !args.bundle.empty() && !usable;
  std::optional<TempDirectory> temporary;
  WarmWorkers workers{.arguments = {}, .jobs = args.jobs};
  if (!args.dry_run) try {
      temporary.emplace(absolute_path("TMPDIR", options.host_compiler.temp_directory));
      workers.arguments = {"--temp-dir", temporary->path()};
    } catch (const TransientCompileError&) {
      if (private_cache) throw;
    }
  if (private_cache) {
    use_private_cache(options, temporary->path() + "/cache");
    workers.arguments.insert(workers.arguments.end(), {"--cache-dir", *options.cache.explicit_dir});
  }
  std::optional<Engine> own;  // of a private cache
  Engine& engine = private_cache ? own.emplace(options) : chooser;
  StatisticsAtEnd statistics(engine.cache(), options.events);

  Progress progress(set.items().size(), progress_form(args));
  const WarmRun run = warm_items(engine, set.items(), args.dry_run ? nullptr : &workers, signals, progress);
  progress.end();
  statistics.add(run.worker_statistics);
  tell_of_workers(options, set, run);

  WarmReport report{.set = set, .run = run, .trouble = std::move(trouble), .bundle = std::nullopt};
  report.interrupted = signals.received();
  bool success = complete(run);
  if (!args.bundle.empty()) try {
      if (!success) throw std::runtime_error(args.bundle + " is not written, for kernels are missing in it");
      report.bundle = write_bundle(engine, set.items(), args.bundle);
    } catch (const std::runtime_error& error) {
      report.why_no_bundle = error.what();
      success = false;
    }
  print_report(report, args.json);
  // A record or a request that came to nothing is told, and is a failure where nobody reads what is told.
  return success && report.trouble.problems.empty() ? k_success : k_failure;
}

int warm(const Options& options, const WarmArgs& args) {
  Engine engine(for_warming(options, args.dry_run));
  const DirectoryState state = engine.cache().state();
  if (state.status != DirectoryStatus::usable && !args.dry_run && args.bundle.empty()) {
    complain("there is no cache to fill: " + state.reason);
    return k_failure;
  }
  if (!args.bundle.empty()) check_replaceable("--into", args.bundle);
  WarmTrouble trouble;
  const WarmSet set = wanted(engine, args, trouble);

  // Only from here on there are things to put in order: a long recording is read for seconds, during which a
  // signal ends the process at once.
  StopSignals signals;
  const int status = warm_set(engine, set, std::move(trouble), args, signals);
  signals.die_if_received();
  return status;
}

}  // namespace

SubCommand warm_command(Arguments& app) {
  Arguments arguments = app.sub_command("warm", "Fill the cache or a bundle; needs no GPU");
  const auto args = std::make_shared<WarmArgs>();
  add_warm_args(arguments, *args);
  return {arguments, [args](const Options& options) { return warm(options, *args); }};
}

}  // namespace jitsmith
