#include <jitsmith/tools/warm_run.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/tools/worker_pool.hpp>

namespace jitsmith {
namespace {

WarmResult look_up(Engine& engine, const Specialisation& item) {
  WarmResult result;
  try {
    const bool cached = engine.find(*item.variant, item.params, item.target) != BinarySource::none;
    result.outcome = cached ? WarmOutcome::cached : WarmOutcome::missing;
  } catch (const CompileError& error) {
    return failure(error.what(), error.log);  // no compiler: nothing to be keyed by
  }
  return result;
}

WarmResult result_of(JobEnd end) {
  WarmResult result = end.result ? warm_result_of(*end.result)
                                 : failure(fmt::format("its worker process ended with {}", end.ending));
  result.complaints = std::move(end.complaints);
  return result;
}

}  // namespace

WarmRun warm_items(Engine& engine, const std::vector<Specialisation>& items, const WarmWorkers* workers,
                   StopSignals& signals, Progress& progress) {
  WarmRun run{.results = std::vector<WarmResult>(items.size())};
  const auto finish = [&](std::size_t item, WarmResult result) {
    run.results[item] = std::move(result);
    progress.done(to_string(run.results[item].outcome), to_string(items[item]));
  };

  std::vector<std::size_t> to_compile;
  std::vector<std::string> jobs;
  for (std::size_t item = 0; item < items.size() && !signals.received(); ++item) {
    WarmResult result = look_up(engine, items[item]);
    if (workers == nullptr || result.outcome != WarmOutcome::missing) {
      finish(item, std::move(result));
    } else {
      to_compile.push_back(item);
      jobs.push_back(to_json(record_of(items[item])));
    }
  }
  if (jobs.empty() || signals.received()) return run;

  std::vector<std::string> argv{"/proc/self/exe", "warm-worker"};
  argv.insert(argv.end(), workers->arguments.begin(), workers->arguments.end());
  WorkerPool pool(std::move(argv), workers->jobs);
  progress.work_begins();
  run.trouble = pool.run(jobs, signals.descriptor(), [&](std::size_t job, JobEnd end) {
    WarmResult result = result_of(std::move(end));
    run.worker_statistics += result.statistics;
    finish(to_compile[job], std::move(result));
  });
  run.peak_memory_bytes = pool.peak_memory_bytes();
  return run;
}

}  // namespace jitsmith
