// The engine on the host target when its compiler fails or lies, when the process forks, and whatever tier
// the code comes from.
#include <jitsmith/runtime/engine.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/compiler_script.hpp"
#include "support/message_of.hpp"
#include "support/offset_run.hpp"
#include "support/skinny_gemm_cases.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

// A bench whose compiler is the script `body`, in a folder of its own.
struct Faulty {
  explicit Faulty(const std::string& body)
      : bench(cache / "c", [&](Options& options) { use_compiler_script(options, here / "c++", body); }) {}

  std::size_t entries() const { return entry_files(cache / "c").size(); }

  TempDir cache, here;
  OffsetBench bench;
};

void touch(const std::string& path) {
  std::ofstream stream(path);
}

void wait_for_file(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

TEST_SUITE_BEGIN("Engine under faults");

TEST_CASE(
    "F29: Neither a compile error nor want of memory leaves anything on disk, and only the first is kept") {
  const TempDir state;
  const std::string passing = "test -e " + (state / "memory") +
                              " || { echo 'c++: fatal error: Cannot allocate memory'; exit 1; }\n" +
                              real_compile();
  {
    Faulty broken("echo 'mine/offset.cu:1:1: error: bad'; exit 1");
    CHECK_THROWS_AS(broken.bench.engine.plan(offset_request(1)), CompileError);
    CHECK(broken.entries() == 0);
    write_compiler_script(broken.here / "c++", real_compile());
    CHECK_THROWS_AS(broken.bench.engine.plan(offset_request(1)), CompileError);
    CHECK(broken.entries() == 0);
  }
  Faulty poor(passing);
  CHECK_THROWS_AS(poor.bench.engine.plan(offset_request(1)), TransientCompileError);
  CHECK(poor.entries() == 0);
  touch(state / "memory");
  CHECK(run_offset(poor.bench.engine.plan(offset_request(1)), 1) == expected_offset(1));
  CHECK(poor.entries() == 1);
}

TEST_CASE(
    "F30: A compiler's output that is empty, no ELF file or another kernel is an error and is not stored") {
  const std::pair<std::string, const char*> outputs[] = {
      {": > ../kernel.so", "ended with exit status 0"},
      {"echo no object > ../kernel.so", "does not export jitsmith_host_kernel"},
      {"head -c 100 /bin/sh > ../kernel.so", "does not export jitsmith_host_kernel"},
      {real_compile() + " -Djitsmith_host_kernel=another_kernel", "does not export jitsmith_host_kernel"}};
  for (const auto& [body, sentence] : outputs) {
    CAPTURE(body);
    Faulty faulty(body);
    const std::string message =
        message_of<CompileError>([&] { faulty.bench.engine.plan(offset_request(1)); });
    CHECK_MESSAGE(contains(message, sentence), message);
    CHECK(faulty.entries() == 0);
  }
}

TEST_CASE("F27: A child forked during a compile compiles by itself, and uses what was ready") {
  const TempDir state;
  Faulty slow("touch " + (state / "started") + "\nwhile ! test -e " + (state / "go") +
              "; do sleep 0.01; done\n" + real_compile());
  touch(state / "go");
  const Plan ready =
      slow.bench.engine.plan(offset_request(5), nullptr, ForcedChoice::parse("plain:threads=128"));
  std::filesystem::remove(state / "go");
  std::filesystem::remove(state / "started");

  std::thread builder([&] { slow.bench.engine.plan(offset_request(5)); });
  wait_for_file(state / "started");
  const pid_t child = fork();
  if (child == 0) {
    ::alarm(60);  // a child that waits for its parent's flight would wait for ever
    try {
      touch(state / "go");
      const bool same = run_offset(slow.bench.engine.plan(offset_request(5)), 5) == expected_offset(5);
      const bool known =
          slow.bench.engine.plan(offset_request(6), nullptr, ForcedChoice::parse("plain:threads=128"))
              .state()
              .source == BinarySource::memory;
      _exit(same && known ? 0 : 1);
    } catch (...) {
    }
    _exit(2);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  touch(state / "go");
  builder.join();
}

TEST_CASE("Who waits for a compile gets its code also when the cache cannot take it") {
  const TempDir state;
  Faulty faulty("touch " + (state / "started") + "\nwhile [ ! -e " + (state / "go") +
                " ]; do sleep 0.01; done\n" + real_compile());
  // Files in the places of the folders: locks work, and nothing can be stored.
  for (int shard = 0; shard < 256; ++shard) touch(faulty.cache / fmt::format("c/v1/{:02x}", shard));
  Engine& engine = faulty.bench.engine;
  Plan plan;
  std::atomic<int> warmed{0};
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { plan = engine.plan(offset_request(10)); });
    wait_for_file(state / "started");
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        warmed += engine.warm(offset_request(10), device_profile("host")) == BinarySource::compiled;
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until they wait
    touch(state / "go");
  }
  CHECK(run_offset(plan, 10) == expected_offset(10));
  CHECK(warmed == 3);
  CHECK(engine.stats().compiled == 1);
  CHECK(engine.cache().stats().written == 0);
}

TEST_CASE("F42: Cold, warm, trimmed and bundled runs give the same bits") {
  const TempDir directory, other;
  const std::string cache = directory / "c";
  const SkinnyGemm request{.m = 3, .n = 8, .k = 64, .out = ElementType::f32};
  const GemmData data = gemm_data(request, GemmValues::random, 42);
  const auto run = [&](const std::function<void(Options&)>& change, BinarySource wanted) {
    Options options = host_options(cache);
    if (change) change(options);
    Engine engine(std::move(options));
    const TypedPlan<SkinnyGemm> plan = engine.plan(request);
    CHECK(to_string(plan.state().source) == to_string(wanted));
    return run_gemm(engine.current_device(), plan, data, {}).y.bytes;
  };
  const auto cold = run([](Options& options) { options.cold = true; }, BinarySource::compiled);
  CHECK(std::filesystem::exists(cache) == false);
  CHECK(run({}, BinarySource::compiled) == cold);
  CHECK(run({}, BinarySource::disk) == cold);
  CHECK(run(
            [&](Options& options) {
              options.bundles = {cache};
              options.cache.explicit_dir = other / "c";
            },
            BinarySource::bundle) == cold);

  const auto entries = entry_files(cache);
  REQUIRE(entries.size() == 1);
  const timespec old[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, entries[0].c_str(), old, 0) == 0);
  CacheOptions trimming;
  trimming.directory.explicit_dir = cache;
  CHECK(Cache(std::move(trimming)).trim({.max_bytes = 1}, TrimMode::remove).removed_entries == 1);
  CHECK(run({}, BinarySource::compiled) == cold);
}

TEST_SUITE_END();

}  // namespace jitsmith
