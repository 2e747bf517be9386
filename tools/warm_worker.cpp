// jitsmith warm-worker: the process that `jitsmith warm` starts for its compiles. NVRTC's front end is serial
// within a process, and a compiler that crashes takes no more than one kernel with it.
//
// Standard input: a KernelRecord a line. Standard output: a line when it is ready, then a WarmResult a line.
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/losses.hpp>
#include <jitsmith/tools/private_cache.hpp>
#include <jitsmith/tools/specialisation.hpp>
#include <jitsmith/tools/warm_result.hpp>

namespace jitsmith {
namespace {

struct WorkerArgs {
  std::string cache_dir, temp_dir;
};

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// Keeps standard output for the answers: what anybody else prints goes to standard error.
File take_standard_output() {
  const int answers = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (answers < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return {nullptr, &std::fclose};
  return {::fdopen(answers, "w"), &std::fclose};
}

// When the starter dies in the middle of a compile, the compiler has to end as well. A worker that leads no
// process group was started by hand: its group is somebody else's.
void end_with_starter() {
  if (::getpgrp() != ::getpid()) return;
  ::signal(SIGTERM, [](int) { ::kill(0, SIGKILL); });
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

WarmResult warm_one(Engine& engine, const std::string& line) try {
  const Specialisation item = specialisation_of(engine, KernelRecord::parse(line));
  const Cache& cache = engine.cache();
  const CacheStats before = cache.stats();
  const auto start = std::chrono::steady_clock::now();
  WarmResult result;
  if (engine.warm(*item.variant, item.params, item.target) == BinarySource::compiled) {
    result.outcome = WarmOutcome::compiled;
    if (cache.stats().written == before.written) result.not_stored = why_not_stored(cache, before);
    result.not_shared = why_not_shared(cache, engine.options().remote.mode, before);
  } else {
    result.outcome = WarmOutcome::cached;
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
} catch (const CompileError& error) {
  constexpr std::size_t k_log_bytes = 64 << 10;
  return failure(error.what(), error.log.substr(0, k_log_bytes));
} catch (const std::bad_alloc&) {
  return failure("the compiler is out of memory; give fewer --jobs");
} catch (const std::exception& error) {
  return failure(error.what());
}

bool answer(FILE* file, const std::string& line) {
  return std::fputs((line + '\n').c_str(), file) >= 0 && std::fflush(file) == 0;
}

int serve(Options options, const WorkerArgs& args) {
  end_with_starter();
  const File answers = take_standard_output();
  if (!answers)
    throw std::runtime_error("the worker has no descriptor for its answers; raise the limit on them");
  options.policy = Policy::compile;
  options.record.clear();
  if (!args.temp_dir.empty()) options.host_compiler.temp_directory = args.temp_dir;
  if (!args.cache_dir.empty()) use_private_cache(options, args.cache_dir);
  Engine engine(std::move(options));
  if (!answer(answers.get(), "ready")) return k_failure;
  std::string line;
  CacheStats told;
  for (int c; (c = std::getchar()) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    WarmResult result = warm_one(engine, line);
    const CacheStats now = engine.cache().stats();
    result.statistics = now - std::exchange(told, now);
    if (!answer(answers.get(), to_line(result))) return k_failure;
    line.clear();
  }
  return k_success;
}

}  // namespace

SubCommand warm_worker_command(Arguments& app) {
  Arguments arguments = app.hidden_sub_command("warm-worker", "Compiles for `jitsmith warm`");
  const auto args = std::make_shared<WorkerArgs>();
  arguments.text("--cache-dir", args->cache_dir, "DIR", "Instead of the cache directory");
  arguments.text("--temp-dir", args->temp_dir, "DIR", "For what the host compiler reads and writes");
  return {arguments, [args](Options options) { return serve(std::move(options), *args); }};
}

}  // namespace jitsmith
