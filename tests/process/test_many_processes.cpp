// One cache directory and several processes: equal entries, and a sound cache whenever one of them dies.
#include <random>

#include <doctest/doctest.h>

#include <jitsmith/runtime/engine.hpp>

#include "support/child.hpp"
#include "support/engine_options.hpp"
#include "support/kernel_cache.hpp"
#include "support/offset_op.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

BinarySource warm(const std::string& cache, Executor executor, std::int64_t threads = 64) {
  Engine engine(executor == Executor::host ? host_options(cache) : cuda_options(cache));
  const Op op = offset_op();
  const Target target = executor == Executor::host ? host_target() : Target{Executor::cuda, "sm_90a"};
  return engine.warm(op.variants[0], offset_params(threads), target);
}

// How many entries there are; every one must verify.
int sound_entries(const std::string& cache) {
  int count = 0;
  Engine engine(host_options(cache));
  engine.cache().list([&](const ListedEntry& entry) {
    CHECK_MESSAGE(entry.problem.empty(), entry.problem);
    ++count;
  });
  return count;
}

void check_equal_entries(Executor executor) {
  const TempDir together, apart;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i)
    children.push_back(start([&] { return warm(together.path().string(), executor) != BinarySource::none; }));
  children.push_back(start([&] { return warm(apart.path().string(), executor) == BinarySource::compiled; }));
  for (const pid_t child : children) CHECK(status_of(child) == 0);

  CHECK(sound_entries(together.path().string()) == 1);
  const auto one = entry_files(together.path()), other = entry_files(apart.path());
  REQUIRE(one.size() == 1);
  REQUIRE(other.size() == 1);
  CHECK(one[0].filename() == other[0].filename());
  CHECK(bytes_of(one[0]) == bytes_of(other[0]));
  CHECK(warm(together.path().string(), executor) == BinarySource::disk);
}

// Kills a process that fills a cache, at a moment between 0 and `longest_ms` after its start; each round has
// its own cache.
void check_killed_writers(Executor executor, int rounds, unsigned longest_ms) {
  std::mt19937 random(3);
  int unfinished = 0;
  for (int round = 0; round < rounds; ++round) {
    const TempDir cache;
    const std::string path = cache.path().string();
    const pid_t child = start([&] {
      for (const std::int64_t threads : {32, 64, 96, 128}) warm(path, executor, threads);
      return true;
    });
    usleep(1000 * static_cast<unsigned>(random() % longest_ms));
    kill(child, SIGKILL);
    status_of(child);
    const int left = sound_entries(path);
    if (left < 4) ++unfinished;
    CHECK(warm(path, executor, 32) == (left == 0 ? BinarySource::compiled : BinarySource::disk));
    CHECK(warm(path, executor, 32) == BinarySource::disk);
  }
  CHECK(unfinished > 0);  // else nothing was killed at work
}

}  // namespace

TEST_SUITE_BEGIN("many processes");

TEST_CASE("Processes that compile one host kernel together write the same entry as one alone") {
  check_equal_entries(Executor::host);
}

TEST_CASE("Processes that compile one GPU kernel together write the same entry as one alone") {
  if (have_nvrtc()) check_equal_entries(Executor::cuda);
}

TEST_CASE("Killed host compiles leave a sound cache") {
  check_killed_writers(Executor::host, 8, 500);
}

TEST_CASE("Killed GPU compiles leave a sound cache") {
  if (have_nvrtc()) check_killed_writers(Executor::cuda, 12, 250);
}

TEST_SUITE_END();

}  // namespace jitsmith
