// Clusters and programmatic launches on the host target: right kernels work in any order, wrong ones are
// caught.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "support/host_kernel.hpp"
#include "support/message_of.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

// Each thread gives its global number to the next block of its cluster, in static or in dynamic shared
// memory, and writes what it got. The other cases leave something out.
constexpr const char* k_kernel = R"(
#include "device/cluster.cuh"
#include "device/dependent_launch.cuh"
#include "device/launch.cuh"
#include "device/shared.cuh"
#include "device/warp.cuh"

namespace jitsmith {

enum class Probe : int {
  pass_static, pass_dynamic, no_first_barrier, no_second_barrier, leave_early, map_late, arrive_twice, only_wait,
  rank_too_large, not_shared, absent_thread, no_dependency_wait
};

struct Shared {
  uint32 got[64];
};

JITSMITH_KERNEL void probe(Probe which, uint32 cluster, uint32* out) {
  Shared& shared = block_shared<Shared>();
  uint32* const dynamic = dynamic_shared<uint32>();
  const uint32 thread = thread_index_x(), i = block_index_x() * block_extent_x() + thread, rank = cluster_rank();
  uint32* const mine = which == Probe::pass_dynamic ? dynamic : shared.got;
  if (which != Probe::no_dependency_wait) wait_for_dependency();
  if (which == Probe::absent_thread && i == 0) {
    sync_warp(1);
    cluster_arrive();
    sync_block();
  }
  if (which == Probe::only_wait) cluster_wait();
  if (which != Probe::no_first_barrier) {
    cluster_arrive();
    if (which == Probe::arrive_twice) cluster_arrive();
    cluster_wait();
  }
  if (which == Probe::not_shared) mine[thread] = *map_shared_rank(out, 0);
  const uint32 to = which == Probe::rank_too_large ? cluster : (rank + 1) % cluster;
  if (which == Probe::leave_early || which == Probe::map_late) {
    // The last block gives the right numbers, and leaves. Block 0 reads them later than it may.
    mine[thread] = i;
    const uint32* there = map_shared_rank(mine, cluster - 1);
    cluster_arrive();
    cluster_wait();
    if (rank != 0) return;
    sync_block();
    if (which == Probe::map_late) there = map_shared_rank(mine, cluster - 1);
    out[i] = there[thread];
    return;
  }
  map_shared_rank(mine, to)[thread] = i;
  if (which != Probe::no_second_barrier) {
    cluster_arrive();
    cluster_wait();
  }
  out[i] = mine[thread];
}

}  // namespace jitsmith
)";

enum class Probe : int {
  pass_static,
  pass_dynamic,
  no_first_barrier,
  no_second_barrier,
  leave_early,
  map_late,
  arrive_twice,
  only_wait,
  rank_too_large,
  not_shared,
  absent_thread,
  no_dependency_wait
};

constexpr std::uint32_t k_threads = 64, k_clusters = 3;

std::vector<std::uint32_t> run(Probe which, std::uint32_t cluster, std::uint64_t seed = 0,
                               bool programmatic = false) {
  static const Binary binary = compile_for_host(k_kernel, "jitsmith::probe");
  const auto kernel = load_host_kernel(binary, {.seed = seed});
  std::vector<std::uint32_t> out(std::size_t{k_threads} * k_clusters * cluster, 0xdeadbeef);
  launch(*kernel,
         {.grid = {k_clusters * cluster, 1, 1},
          .block = {k_threads, 1, 1},
          .dynamic_shared_bytes = k_threads * 4,
          .cluster = cluster,
          .programmatic = programmatic},
         which, cluster, out.data());
  return out;
}

// What a thread gets: the number of its twin in the block before, in its cluster.
std::vector<std::uint32_t> passed(std::uint32_t cluster) {
  std::vector<std::uint32_t> got;
  for (std::uint32_t block = 0; block < k_clusters * cluster; ++block) {
    const std::uint32_t from = block / cluster * cluster + (block % cluster + cluster - 1) % cluster;
    for (std::uint32_t thread = 0; thread < k_threads; ++thread) got.push_back(from * k_threads + thread);
  }
  return got;
}

std::string refusal(Probe which, std::uint32_t cluster = 2) {
  return message_of<HostKernelError>([&] { run(which, cluster); });
}

}  // namespace

TEST_SUITE_BEGIN("device cluster");

TEST_CASE("Blocks of a cluster reach each other's shared memory, in any order of blocks and threads") {
  for (const std::uint32_t cluster : {1, 2, 3, 4, 8})
    for (std::uint64_t seed = 0; seed < 8; ++seed)
      for (const Probe which : {Probe::pass_static, Probe::pass_dynamic}) {
        CAPTURE(cluster);
        CAPTURE(seed);
        CHECK(run(which, cluster, seed) == passed(cluster));
      }
}

TEST_CASE("A missing first barrier is caught: the other block may not have begun") {
  const std::string message = refusal(Probe::no_first_barrier);
  CHECK(contains(message, "maps shared memory of block 1 of its cluster, which may not have begun"));
  CHECK(contains(message, line_of(k_kernel, "map_shared_rank(mine, to)")));
}

TEST_CASE(
    "A missing second barrier shows, as NaN or another's value, or as an access to a block that has ended") {
  int shown = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    try {
      shown += run(Probe::no_second_barrier, 2, seed) != passed(2);
    } catch (const HostKernelError& error) {
      CHECK(contains(error.what(), "which has ended"));
      ++shown;
    }
  }
  CHECK(shown == 16);
}

TEST_CASE("What a block had that has left is NaN, and can't be mapped any more") {
  int read_as_nan = 0, named = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const std::vector<std::uint32_t> out = run(Probe::leave_early, 2, seed);
    read_as_nan += std::ranges::count(out, 0xffffffffU) > 0;
    try {
      run(Probe::map_late, 2, seed);
    } catch (const HostKernelError& error) {
      CHECK(contains(error.what(), "maps shared memory of block 1 of its cluster, which has ended"));
      ++named;
    }
  }
  CHECK(read_as_nan > 4);
  CHECK(named > 4);
}

TEST_CASE("Misuse of the cluster's barrier and of its memory is named") {
  CHECK(contains(refusal(Probe::arrive_twice), "arrives at the cluster's barrier twice, "));
  CHECK(contains(refusal(Probe::only_wait), "waits at the cluster's barrier, "));
  CHECK(contains(refusal(Probe::only_wait), line_of(k_kernel, "Probe::only_wait) cluster_wait()")));
  CHECK(contains(refusal(Probe::rank_too_large), "maps shared memory of block 2 of a cluster of 2"));
  CHECK(contains(refusal(Probe::not_shared), "maps an address that is not in its shared memory"));
  const std::string stalled = refusal(Probe::absent_thread);
  CHECK(contains(stalled, "no thread can go on: of 128 threads, "));
  CHECK(contains(stalled, "waiting at the cluster's barrier of "));
}

TEST_CASE("After an error the next cluster works") {
  static const Binary binary = compile_for_host(k_kernel, "jitsmith::probe");
  const auto kernel = load_host_kernel(binary, {});
  std::vector<std::uint32_t> out(std::size_t{k_threads} * 2);
  const LaunchShape shape{
      .grid = {2, 1, 1}, .block = {k_threads, 1, 1}, .dynamic_shared_bytes = k_threads * 4, .cluster = 2};
  CHECK_THROWS_AS(launch(*kernel, shape, Probe::arrive_twice, 2U, out.data()), HostKernelError);
  launch(*kernel, shape, Probe::pass_static, 2U, out.data());
  CHECK(out[0] == k_threads);
}

TEST_CASE("A grid that clusters do not divide, and clusters of no size that there is, are refused") {
  static const Binary binary = compile_for_host(k_kernel, "jitsmith::probe");
  const auto kernel = load_host_kernel(binary, {});
  for (const auto& [blocks, cluster] : {std::pair<std::uint32_t, std::uint32_t>{3, 2}, {16, 16}, {2, 0}}) {
    const std::string message = message_of<HostKernelError>([&, blocks = blocks, cluster = cluster] {
      launch(*kernel, {.grid = {blocks, 1, 1}, .block = {1, 1, 1}, .cluster = cluster}, Probe::pass_static,
             cluster, static_cast<std::uint32_t*>(nullptr));
    });
    CHECK(contains(message, "cannot be cut into clusters of " + std::to_string(cluster)));
  }
}

TEST_CASE("A block of a programmatic launch that never waits for the kernel in front is an error") {
  CHECK(run(Probe::pass_static, 2, 0, true) == passed(2));
  CHECK(run(Probe::no_dependency_wait, 2, 0, false) == passed(2));
  CHECK(contains(message_of<HostKernelError>([] { run(Probe::no_dependency_wait, 2, 0, true); }),
                 "every thread exited without a call of wait_for_dependency()"));
}

TEST_SUITE_END();
