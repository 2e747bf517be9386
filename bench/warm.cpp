// What `jitsmith warm` costs beyond the compiler: kernels a second of the command, beside as many processes
// that call NVRTC with the same sources and options, without key, cache, protocol or supervision.
//
//   bench_warm JITSMITH [KERNELS [JOBS [ROUNDS]]]
//
// JITSMITH is the command's path. Both start from nothing each time, NVRTC's loading among it, in
// alternation; a figure is the median of its rounds. It needs NVRTC and no GPU.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <set>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <jitsmith/jit/child_process.hpp>
#include <jitsmith/jit/specialize.hpp>
#include <jitsmith/jit/temp_directory.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/recording.hpp>

namespace jitsmith::bench {
namespace {

constexpr const char* k_arch = "sm_90a";

struct Settings {
  std::string tool;
  std::size_t kernels = 64;
  unsigned jobs = std::max(1u, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
  int rounds = 5;
};

struct Work {
  std::vector<KernelRecord> records;
  std::vector<SpecializedSource> sources;
};

// Candidates of small and large M, as many of each: what takes long to compile and what does not.
Work work_of(std::size_t kernels) {
  Options options;
  options.cache.enabled = false;
  const Engine engine(options);
  const Op& op = engine.op("skinny_gemm");
  const DeviceFacts device = device_profile_for_arch(k_arch);
  const TemplateFiles files;
  Work work;
  std::set<std::string> known;
  std::vector<std::pair<const Variant*, Params>> all;
  for (const std::int64_t m : {1, 2, 4, 8})
    for (const Variant& variant : op.variants)
      for (Params& params : variant.candidates(
               op.request.complete({{"m", m}, {"n", std::int64_t{2112}}, {"k", std::int64_t{7168}}}, op.name),
               device))
        if (known.insert(variant.name + to_string(params)).second)
          all.emplace_back(&variant, std::move(params));
  kernels = std::min(kernels, all.size());
  for (std::size_t i = 0; i < kernels; ++i) {
    const auto& [variant, params] = all[i * all.size() / kernels];
    work.records.push_back({.op = op.name,
                            .arch = k_arch,
                            .variant = variant->name,
                            .params = texts_of(params),
                            .request = std::nullopt});
    work.sources.push_back(specialize(variant->kernel, params, include_closure(variant->kernel, files)));
  }
  return work;
}

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // of all children: says more than time where others use the machine too
};

double cpu_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <class F>
Cost cost_of(F&& work) {
  const double cpu_before = cpu_seconds_of_children();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {took.count(), cpu_seconds_of_children() - cpu_before};
}

void warm(const Settings& settings, const Work& work, const std::string& nvrtc) {
  const TempDirectory folder("/tmp");
  std::string lines;
  for (const KernelRecord& record : work.records) lines += to_json(record) + '\n';
  folder.write("recording", lines);
  const ChildResult result =
      run_child({.argv = {settings.tool, "warm", "--recording", folder.path() + "/recording", "--jobs",
                          std::to_string(settings.jobs)},
                 .environment = {"PATH=/usr/bin:/bin", "JITSMITH_NVRTC=" + nvrtc,
                                 "JITSMITH_CACHE_DIR=" + folder.path() + "/cache"},
                 .directory = folder.path()});
  if (!result.succeeded)
    throw std::runtime_error(
        fmt::format("{} warm ended with {}: {}", settings.tool, result.ending, result.output));
}

// This process must not have loaded NVRTC: each of its children does.
void compile_barely(const Settings& settings, const Work& work, const std::string& nvrtc) {
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  auto* const next = new (shared) std::atomic<std::size_t>(0);
  std::vector<pid_t> children;
  for (unsigned job = 0; job < settings.jobs; ++job) {
    const pid_t child = ::fork();
    if (child == 0) try {
        NvrtcSearch search;
        search.explicit_path = nvrtc;
        NvrtcCompiler compiler(search);
        for (std::size_t i = (*next)++; i < work.sources.size(); i = (*next)++)
          compiler.compile(work.sources[i], k_arch);
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    children.push_back(child);
  }
  bool all_well = true;
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    all_well = all_well && status == 0;
  }
  ::munmap(shared, sizeof(std::atomic<std::size_t>));
  if (!all_well) throw std::runtime_error("a bare compile failed");
}

void run(const Settings& settings) {
  const std::string nvrtc = locate_nvrtc(nvrtc_search_from_environment());
  const Work work = work_of(settings.kernels);
  const auto count = static_cast<double>(work.sources.size());
  std::vector<Cost> ours, bare;
  for (int round = -1; round < settings.rounds; ++round) {
    const Cost our_cost = cost_of([&] { warm(settings, work, nvrtc); });
    const Cost bare_cost = cost_of([&] { compile_barely(settings, work, nvrtc); });
    if (round < 0) continue;  // the files come into memory
    fmt::print("round {}: jitsmith warm {:.1f}/s, bare NVRTC {:.1f}/s\n", round + 1, count / our_cost.seconds,
               count / bare_cost.seconds);
    ours.push_back(our_cost);
    bare.push_back(bare_cost);
  }
  const auto median = [](std::vector<Cost> costs, double Cost::*what) {
    std::ranges::sort(costs, {}, what);
    return costs[costs.size() / 2].*what;
  };
  const double our_time = median(ours, &Cost::seconds), bare_time = median(bare, &Cost::seconds);
  const double our_cpu = median(ours, &Cost::cpu_seconds), bare_cpu = median(bare, &Cost::cpu_seconds);
  fmt::print("{} kernels for {}, {} processes: jitsmith warm {:.1f}/s, bare NVRTC {:.1f}/s, ratio {:.1f} %\n",
             work.sources.size(), k_arch, settings.jobs, count / our_time, count / bare_time,
             100 * bare_time / our_time);
  fmt::print("CPU time a kernel: jitsmith warm {:.1f} ms, bare NVRTC {:.1f} ms, ratio {:.1f} %\n",
             1e3 * our_cpu / count, 1e3 * bare_cpu / count, 100 * bare_cpu / our_cpu);
}

}  // namespace
}  // namespace jitsmith::bench

int main(int argc, char** argv) {
  try {
    if (argc < 2 || argc > 5) throw jitsmith::InvalidRequest("give JITSMITH [KERNELS [JOBS [ROUNDS]]]");
    jitsmith::bench::Settings settings{.tool = std::filesystem::absolute(argv[1]).string()};
    if (argc > 2) settings.kernels = std::stoul(argv[2]);
    if (argc > 3) settings.jobs = static_cast<unsigned>(std::stoul(argv[3]));
    if (argc > 4) settings.rounds = std::stoi(argv[4]);
    jitsmith::bench::run(settings);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_warm: {}\n", error.what());
    return 1;
  }
}
