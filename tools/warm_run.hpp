// Has every kernel of a set in the cache: those that are there already are found by this process, the rest is
// compiled by workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/progress.hpp>
#include <jitsmith/tools/specialisation.hpp>
#include <jitsmith/tools/stop_signals.hpp>
#include <jitsmith/tools/warm_result.hpp>

namespace jitsmith {

struct WarmRun {
  std::vector<WarmResult> results;      // of the items, in their order
  std::uint64_t peak_memory_bytes = 0;  // of a worker or its compiler
  CacheStats worker_statistics;         // all together, but of jobs that a worker died of
  std::string trouble;                  // why workers could not go on; then some are unfinished
};

// How workers are started: arguments of warm-worker, and how many at once.
struct WarmWorkers {
  std::vector<std::string> arguments;
  unsigned jobs = 1;
};

// `engine` is asked what is there. Without `workers` what is not is missing.
// Stops early on a signal.
WarmRun warm_items(Engine& engine, const std::vector<Specialisation>& items, const WarmWorkers* workers,
                   StopSignals& signals, Progress& progress);

}  // namespace jitsmith
