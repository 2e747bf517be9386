// The engine on the host target: from requests to results. Cases that need a cold cache have one of their
// own.
#include <jitsmith/runtime/engine.hpp>

#include <cstring>
#include <latch>
#include <thread>

#include <doctest/doctest.h>

#include "support/message_of.hpp"
#include "support/offset_run.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

using Bench = OffsetBench;

void check_result(const Plan& plan, int n) {
  CHECK(run_offset(plan, n) == expected_offset(n));
}

}  // namespace

TEST_SUITE_BEGIN("Engine");

TEST_CASE("A request becomes a plan that runs") {
  Bench bench;
  const Plan plan = bench.engine.plan(offset_request(130));
  REQUIRE(plan);
  CHECK(plan.state().op == "offset");
  CHECK(plan.state().request == Params{{"n", std::int64_t{130}}});
  CHECK(plan.state().selection.source == SelectionSource::heuristic);
  CHECK(plan.state().facts.param_bytes == std::vector<std::uint32_t>{8, 8, 4, 4});
  check_result(plan, 130);
}

TEST_CASE("A launch with other parameters than the kernel's is refused, and nothing runs") {
  Bench bench;
  const Plan plan = bench.engine.plan(offset_request(10));
  float y = -1;
  const std::string message = message_of<InvalidRequest>(
      [&] { plan.launch(nullptr, plan.state().selection.shape, &y, &y, 1.0, 10); });
  CHECK(contains(message, "takes parameters of 8, 8, 4, 4 bytes, but was given 8, 8, 8, 4 bytes"));
  CHECK_THROWS_AS(plan.launch(nullptr, plan.state().selection.shape, &y), InvalidRequest);
  CHECK(contains(message_of<InvalidRequest>([] { Plan().launch(nullptr, {}, 1); }), "was never made"));
  CHECK(y == -1);
}

TEST_CASE("Equal typed requests share one plan, others have their own") {
  Bench bench;
  const auto plan = bench.engine.plan(Offset{.n = 10});
  CHECK(bench.engine.plan(Offset{.n = 10}).share() == plan.share());
  CHECK(bench.engine.plan(Offset{.n = 11}).share() != plan.share());
  CHECK(bench.engine.plan(Offset{.n = 11}).state().kernel == plan.state().kernel);
  CHECK(bench.engine.stats().plans == 2);
  std::vector<float> x(10, 1.0f), y(10);
  plan.launch(nullptr, {y.data(), x.data(), 2});
  CHECK(y == std::vector<float>(10, 3.0f));
}

TEST_CASE("A plan outlives its engine") {
  Plan plan;
  {
    Bench bench;
    plan = bench.engine.plan(offset_request(33));
  }
  CHECK(plan.state().selection.variant->name == "plain");
  check_result(plan, 33);
}

TEST_CASE("A second engine finds the kernel on disk") {
  const TempDir cache;
  {
    Bench first(cache.path().string());
    CHECK(first.engine.plan(offset_request(10)).state().source == BinarySource::compiled);
    CHECK(first.events.count("compile") == 1);
  }
  Bench second(cache.path().string());
  const Plan plan = second.engine.plan(offset_request(10));
  CHECK(plan.state().source == BinarySource::disk);
  CHECK(second.engine.stats().compiled == 0);
  CHECK(second.engine.stats().loaded_from_disk == 1);
  check_result(plan, 10);
}

TEST_CASE("Sixteen threads that plan one cold kernel share one compile [tsan]") {
  const TempDir cache;
  Bench bench(cache.path().string());
  std::latch start(16);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(16);
  for (auto& result : results)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      result = run_offset(bench.engine.plan(Offset{.n = 70}), 70);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bench.engine.stats().compiled == 1);
  CHECK(bench.events.count("compile") == 1);
  for (const auto& result : results) CHECK(result == results.front());
}

TEST_CASE("A compile error is kept, and raised again in full without another compile") {
  auto temp = std::make_unique<TempDir>();
  Bench bench(kernel_cache(),
              [&](Options& options) { options.host_compiler.temp_directory = temp->path().string(); });
  Op broken = offset_op("template <int Threads> void offset() { no_such_function(); }\n");
  broken.name = "broken";
  broken.variants[0].kernel.function = "offset";
  bench.engine.add(std::move(broken));
  std::string message, log;
  try {
    bench.engine.plan({"broken", {{"n", std::int64_t{1}}}});
    FAIL("nothing was thrown");
  } catch (const CompileError& error) {
    message = error.what();
    log = error.log;
  }
  CHECK(contains(log, "no_such_function"));
  temp.reset();  // a second compile would now fail otherwise
  try {
    bench.engine.plan({"broken", {{"n", std::int64_t{2}}}});
    FAIL("nothing was thrown");
  } catch (const CompileError& error) {
    CHECK(error.what() == message);
    CHECK(error.log == log);
  }
  CHECK(bench.engine.stats().compiled == 0);
}

TEST_CASE("Without a usable cache directory everything still works") {
  Bench bench("/dev/null/cache");
  const Plan plan = bench.engine.plan(offset_request(10));
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(bench.events.count("cache.off") == 1);
  check_result(plan, 10);
}

TEST_CASE("A damaged cache entry is compiled again and repaired") {
  const TempDir cache;
  { Bench(cache.path().string()).engine.plan(offset_request(10)); }
  flip_a_byte_of_every_entry(cache.path());
  Bench bench(cache.path().string());
  const Plan plan = bench.engine.plan(offset_request(10));
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(bench.engine.cache().stats().corrupt == 1);
  check_result(plan, 10);
  CHECK(Bench(cache.path().string()).engine.plan(offset_request(10)).state().source == BinarySource::disk);
}

TEST_CASE("Warming says what it did, and the policy cached_only then finds it") {
  const TempDir cache;
  const auto strict = [](Options& options) { options.policy = Policy::cached_only; };
  Bench cold(cache.path().string(), strict);
  const std::string message = message_of<NotCached>([&] { cold.engine.plan(offset_request(10)); });
  CHECK(contains(message,
                 "mine/offset.cu mine::offset<64> for host with threads=64 is not cached and the policy is "
                 "cached_only"));
  CHECK(contains(message, "`jitsmith warm offset --set n=10 --set variant=plain:threads=64 --arch host`"));

  Bench bench(cache.path().string());
  CHECK(bench.engine.warm(offset_request(10), device_profile("host")) == BinarySource::compiled);
  CHECK(bench.engine.warm(offset_request(0), device_profile("host")) == BinarySource::none);
  CHECK(Bench(cache.path().string()).engine.warm(offset_request(10), device_profile("host")) ==
        BinarySource::disk);
  CHECK(cold.engine.plan(offset_request(10)).state().source == BinarySource::disk);
}

TEST_CASE("A NoCompileScope refuses what is not loaded, also from disk") {
  Bench bench;
  bench.engine.warm(offset_request(10), device_profile("host"));
  const auto ready = bench.engine.plan(Offset{.n = 10});
  Bench other;
  const NoCompileScope scope(bench.engine), other_scope(other.engine);
  CHECK(bench.engine.plan(Offset{.n = 10}).share() == ready.share());
  CHECK(bench.engine.plan(Offset{.n = 12}).state().source == BinarySource::memory);
  CHECK_THROWS_AS(other.engine.plan(Offset{.n = 10}), NotCached);
}

TEST_SUITE_END();

}  // namespace jitsmith
