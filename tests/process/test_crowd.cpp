// Many processes and threads want one kernel at once, and some of them die, stop or fork on the way.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <jitsmith/runtime/engine.hpp>

#include "support/child.hpp"
#include "support/stub_compiler.hpp"

namespace jitsmith {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds k_limit = 60s;  // nothing may hang, but a loaded machine is slow

// Plans and launches on the host target: true for the right result.
bool adds_up(Engine& engine) {
  const TypedPlan<Offset> plan = engine.plan(Offset{.n = 100});
  std::vector<float> x(100, 1.5f), y(100, 0.0f);
  plan.launch(nullptr, {.y = y.data(), .x = x.data(), .step = 2.0f});
  return y == std::vector<float>(100, 3.5f);
}

bool adds_up(const Options& options) {
  Engine engine(options);
  engine.add(offset_op());
  return adds_up(engine);
}

// `processes` children of as many threads as given, let go at once; true when every thread had a right
// result.
bool crowd(const Options& options, int processes, int threads) {
  Gate gate;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i)
    children.push_back(start([&] {
      Engine engine(options);
      engine.add(offset_op());
      gate.wait();
      std::atomic<int> right{0};
      std::vector<std::thread> workers;
      for (int j = 0; j < threads; ++j) workers.emplace_back([&] { right += adds_up(engine) ? 1 : 0; });
      for (std::thread& worker : workers) worker.join();
      return right == threads;
    }));
  gate.open();
  bool all = true;
  for (const pid_t child : children) all = status_within(child, k_limit) == 0 && all;
  return all;
}

void wait_until_it_runs(const StubCompiler& compiler, int runs) {
  for (int i = 0; i < 5000 && compiler.runs() < runs; ++i) std::this_thread::sleep_for(2ms);
  REQUIRE(compiler.runs() == runs);
}

}  // namespace

TEST_SUITE_BEGIN("crowd");

TEST_CASE(
    "F23: Eight processes of eight threads on one cold key compile once, and all get right results [nosan]") {
  const TempDir cache;
  const StubCompiler compiler(300ms);
  CHECK(crowd(compiler.options(cache / "c"), 8, 8));
  CHECK(compiler.runs() == 1);
}

TEST_CASE("F24: Without working locks at most one compile a process, and all get right results [nosan]") {
  const TempDir cache;
  const StubCompiler compiler(300ms);
  // A folder in the place of the file: every lock fails.
  { Cache make({.directory = compiler.options(cache / "c").cache}); }
  std::filesystem::create_directory(cache.path() / "c" / "v1" / "locks");
  CHECK(crowd(compiler.options(cache / "c"), 8, 8));
  CHECK(compiler.runs() >= 1);
  CHECK(compiler.runs() <= 8);
}

TEST_CASE("F21: When the process that compiles is killed, one of those who wait takes over at once [nosan]") {
  const TempDir cache;
  const StubCompiler compiler(2000ms);
  const Options options = compiler.options(cache / "c");
  const pid_t builder = start([&] { return adds_up(options); });
  wait_until_it_runs(compiler, 1);
  std::vector<pid_t> waiting;
  for (int i = 0; i < 7; ++i) waiting.push_back(start([&] { return adds_up(options); }));
  std::this_thread::sleep_for(300ms);
  CHECK(compiler.runs() == 1);
  kill(builder, SIGKILL);
  CHECK(WIFSIGNALED(status_of(builder)));
  const auto killed = std::chrono::steady_clock::now();
  wait_until_it_runs(compiler, 2);
  CHECK(std::chrono::steady_clock::now() - killed < 10s);  // and not the 30 s that a wait may take
  for (const pid_t child : waiting) CHECK(status_within(child, k_limit) == 0);
  CHECK(compiler.runs() == 2);
}

TEST_CASE(
    "F22: When the process that compiles is stopped, the others compile once they have waited [nosan]") {
  const TempDir cache;
  const StubCompiler compiler(1000ms);
  Options options = compiler.options(cache / "c");
  const pid_t builder = start([&] { return adds_up(options); });
  wait_until_it_runs(compiler, 1);
  kill(builder, SIGSTOP);
  options.lock_wait = 1500ms;
  std::vector<pid_t> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(start([&] { return adds_up(options); }));
  std::this_thread::sleep_for(700ms);
  CHECK(compiler.runs() == 1);
  for (const pid_t child : waiting) CHECK(status_within(child, k_limit) == 0);
  CHECK(compiler.runs() >= 2);
  kill(builder, SIGCONT);
  CHECK(status_within(builder, k_limit) == 0);  // it finishes as if nothing had been
}

TEST_CASE("F27: A child forked during a build neither hangs nor keeps the parent's descriptors [nosan]") {
  const TempDir cache;
  const StubCompiler compiler(700ms);
  Options options = compiler.options(cache / "c");
  options.lock_wait = 500ms;  // a fork inherits the lock's open file: the wait bounds what that can cost
  Engine engine(options);
  engine.add(offset_op());
  std::thread builder([&] { CHECK(adds_up(engine)); });
  wait_until_it_runs(compiler, 1);

  // What a program sees that is started meanwhile: nothing of the cache, of which we have several files open.
  const std::string look =
      "; for fd in /proc/self/fd/*; do readlink $fd; done | grep -q '" + cache.path().string() + "'";
  const int own = ::open(cache.path().c_str(), O_RDONLY);  // one that is inherited
  CHECK(WEXITSTATUS(std::system((":" + look).c_str())) == 0);
  ::close(own);
  CHECK(WEXITSTATUS(std::system((":" + look).c_str())) == 1);
  REQUIRE(compiler.runs() == 1);

  // The same engine, whose build in flight belongs to a thread that the child does not have.
  const pid_t user = start([&] { return adds_up(engine); });
  CHECK(status_within(user, k_limit) == 0);
  const pid_t newcomer = start([&] { return adds_up(options); });
  CHECK(status_within(newcomer, k_limit) == 0);
  builder.join();
  CHECK(adds_up(engine));
}

TEST_SUITE_END();

}  // namespace jitsmith
