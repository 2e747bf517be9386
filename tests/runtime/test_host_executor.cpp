#include <jitsmith/runtime/host_executor.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/host_kernel.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

constexpr const char* k_kernel = R"(
#include "device/launch.cuh"
#include "device/math.cuh"
#include "device/shared.cuh"
#include "device/warp.cuh"

namespace jitsmith {

enum class Probe : int {
  reverse_static, reverse_dynamic, reverse_without_barrier, poison, order, places, early_exit, divergent_barrier,
  two_barriers, own_lane_missing, exited_lane, other_mask, other_operation, overlapping_masks, two_sizes, past_static,
  past_dynamic, past_input, block_sums, past_nothing
};

struct Shared {
  uint32 values[63];  // one less than threads, where a test wants to reach past the end
};
struct Smaller {
  uint32 values[5];
};

JITSMITH_DEVICE void barrier() { sync_block(); }

JITSMITH_KERNEL void probe(Probe which, const uint32* in, uint32* out, uint32 n) {
  const uint32 thread = thread_index_x(), threads = block_extent_x();
  const uint32 i = block_index_x() * threads + thread;
  uint32* dynamic = dynamic_shared<uint32>();
  switch (which) {
    case Probe::reverse_static: {
      Shared& shared = block_shared<Shared>();
      shared.values[thread] = in[i];
      sync_block();
      out[i] = shared.values[threads - 1 - thread];
      break;
    }
    case Probe::reverse_dynamic:
    case Probe::reverse_without_barrier:
      dynamic[thread] = in[i];
      if (which == Probe::reverse_dynamic) sync_block();
      out[i] = dynamic[threads - 1 - thread];
      break;
    case Probe::poison:
      out[2 * i] = dynamic[thread];
      out[2 * i + 1] = block_shared<Shared>().values[thread];
      dynamic[thread] = block_shared<Shared>().values[thread] = 1;
      break;
    case Probe::order: {
      // The place of this thread in the order of all: nothing here is parallel.
      out[i + 1] = out[0]++;
      sync_warp();
      break;
    }
    case Probe::places: {
      const uint32 block = block_index_x() + grid_extent_x() * (block_index_y() + grid_extent_y() * block_index_z());
      const uint32 linear =
          thread_index_x() + block_extent_x() * (thread_index_y() + block_extent_y() * thread_index_z());
      uint32* place = out + 8 * (block * block_extent_x() * block_extent_y() * block_extent_z() + linear);
      const uint32 values[8] = {thread_index_x(), thread_index_y(), thread_index_z(), block_index_x(),
                                block_index_y(),  block_index_z(),  lane_index(),     warp_index()};
      for (int j = 0; j < 8; ++j) place[j] = values[j];
      break;
    }
    case Probe::early_exit:
      if (thread >= n) return;
      dynamic[thread] = in[i];
      sync_block();
      out[i] = dynamic[n - 1 - thread];
      break;
    case Probe::divergent_barrier:
      if (thread % 4 == 0)
        sync_warp(0x11111111);
      else
        barrier();
      if (thread % 4 == 0) sync_warp();
      break;
    case Probe::two_barriers:
      if (thread < n)
        sync_block();
      else
        sync_block();
      break;
    case Probe::own_lane_missing:
      sync_warp(thread == 3 ? 0xfffffff7 : 0xffffffff);
      break;
    case Probe::exited_lane:
      if (thread == 5) return;
      out[i] = shuffle(thread, 0);
      break;
    case Probe::other_mask:
      out[i] = shuffle(thread, 0, thread % 32 < 16 ? 0xffffffff : 0xffff0000);
      if (thread % 32 >= 16) sync_block();
      break;
    case Probe::other_operation:
      if (thread % 2 == 0)
        out[i] = shuffle(thread, 0);
      else
        out[i] = ballot(true);
      break;
    case Probe::overlapping_masks:
      // Legal: lanes 1..3 wait for lane 0, which first meets lane 4.
      if (thread == 0 || thread == 4) out[i] = shuffle(thread + 10, 4, 0x11);
      if (thread < 4) out[i] = shuffle(out[0] + thread, 0, 0xf);
      break;
    case Probe::two_sizes:
      if (thread % 2 == 0)
        block_shared<Shared>().values[0] = 1;
      else
        block_shared<Smaller>().values[0] = 1;
      break;
    case Probe::past_static:
      out[i] = static_cast<uint32*>(block_shared<Shared>().values)[n + thread];
      break;
    case Probe::past_dynamic:
      out[i] = dynamic[n + thread];
      break;
    case Probe::past_input:
      out[i] = in[n + thread];
      break;
    case Probe::past_nothing:
      out[i] = in[n - threads + thread];
      break;
    case Probe::block_sums: {
      float sum = 0;
      for (uint32 j = 0; j < n; ++j) sum = fma_rn(static_cast<float>(in[i]), static_cast<float>(j), sum);
      for (uint32 distance = 16; distance > 0; distance /= 2) sum = add_rn(sum, shuffle_xor(sum, distance));
      float* sums = reinterpret_cast<float*>(dynamic);
      if (lane_index() == 0) sums[warp_index()] = sum;
      sync_block();
      if (thread == 0) {
        float total = 0;
        for (uint32 warp = 0; warp < threads / 32; ++warp) total = add_rn(total, sums[warp]);
        out[block_index_x()] = bits_of(total);
      }
      break;
    }
  }
}

}
)";

enum class Probe : int {
  reverse_static,
  reverse_dynamic,
  reverse_without_barrier,
  poison,
  order,
  places,
  early_exit,
  divergent_barrier,
  two_barriers,
  own_lane_missing,
  exited_lane,
  other_mask,
  other_operation,
  overlapping_masks,
  two_sizes,
  past_static,
  past_dynamic,
  past_input,
  block_sums,
  past_nothing
};

using Words = std::vector<std::uint32_t>;

const Binary& binary() {
  static const Binary compiled = compile_for_host(k_kernel, "jitsmith::probe");
  return compiled;
}

std::shared_ptr<const LoadedKernel> kernel(std::uint64_t seed = 0) {
  return load_host_kernel(binary(), {.seed = seed});
}

void run(const LoadedKernel& loaded, Probe which, const LaunchShape& shape, const Words& in, Words& out,
         std::uint32_t n = 0) {
  launch(loaded, shape, which, in.data(), out.data(), n);
}

LaunchShape line(std::uint32_t blocks, std::uint32_t threads) {
  return {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .dynamic_shared_bytes = 4 * threads};
}

Words counting(std::size_t count) {
  Words words(count);
  std::iota(words.begin(), words.end(), 100u);
  return words;
}

Words reversed_blocks(Words words, std::size_t block) {
  for (std::size_t first = 0; first < words.size(); first += block)
    std::reverse(words.begin() + static_cast<std::ptrdiff_t>(first),
                 words.begin() + static_cast<std::ptrdiff_t>(first + block));
  return words;
}

// The message of the HostKernelError of a launch.
std::string message(const LoadedKernel& loaded, Probe which, const LaunchShape& shape, std::uint32_t n = 0) {
  Words in(1024), out(1024);
  try {
    run(loaded, which, shape, in, out, n);
  } catch (const HostKernelError& error) {
    return error.what();
  }
  return "no error";
}

#define CHECK_CONTAINS(text, part) CHECK_MESSAGE((text).find(part) != std::string::npos, text)

#ifdef __SANITIZE_ADDRESS__
// What a launch in a process of its own says to standard error before it dies.
std::string death_cry(Probe which, const LaunchShape& shape, std::uint32_t n) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto loaded = kernel();
  const Words in(64);
  Words out(64);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    run(*loaded, which, shape, in, out, n);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return text;
}
#endif

}  // namespace

TEST_SUITE_BEGIN("HostExecutor");

TEST_CASE("A barrier separates writes from reads in any order, in static and in dynamic shared memory") {
  const Words in = counting(7 * 63);
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const Probe which : {Probe::reverse_static, Probe::reverse_dynamic}) {
      Words out(in.size());
      run(*kernel(seed), which, line(7, 63), in, out);
      CHECK(out == reversed_blocks(in, 63));
    }
}

TEST_CASE("A removed barrier shows") {
  const Words in = counting(7 * 64);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Words out(in.size());
    run(*kernel(seed), Probe::reverse_without_barrier, line(7, 64), in, out);
    CHECK(out != reversed_blocks(in, 64));
    CHECK(std::count(out.begin(), out.end(), 0xffffffffu) > 0);  // read before written
  }
}

TEST_CASE("Shared memory is NaN at the start of each block") {
  Words out(2 * 4 * 32);
  run(*kernel(), Probe::poison, line(4, 32), {}, out);
  CHECK(out == Words(out.size(), 0xffffffffu));
}

TEST_CASE(
    "Seed 0 runs threads in ascending order, a seed shuffles threads and blocks the same way each time") {
  const auto order = [](std::uint64_t seed) {
    Words out(1 + 4 * 64);
    run(*kernel(seed), Probe::order, line(4, 64), {}, out);
    return Words(out.begin() + 1, out.end());
  };
  Words ascending(4 * 64);
  std::iota(ascending.begin(), ascending.end(), 0u);
  CHECK(order(0) == ascending);
  std::set<Words> seen;
  std::size_t blocks_in_order = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Words shuffled = order(seed);
    CHECK(order(seed) == shuffled);
    seen.insert(shuffled);
    Words firsts;
    for (auto block = shuffled.begin(); block != shuffled.end(); block += 64) {
      CHECK_FALSE(std::is_sorted(block, block + 64));
      CHECK_FALSE(std::is_sorted(block, block + 64, std::greater<>()));
      firsts.push_back(*std::min_element(block, block + 64));
    }
    blocks_in_order += std::ranges::is_sorted(firsts) ? 1 : 0;
    std::ranges::sort(shuffled);
    CHECK(shuffled == ascending);
  }
  CHECK(blocks_in_order < 4);
  CHECK(seen.size() == 8);
}

TEST_CASE("Grids and blocks of three dimensions") {
  const LaunchShape shape{.grid = {2, 3, 4}, .block = {5, 3, 7}};
  const std::uint32_t threads = 5 * 3 * 7;
  Words out(8 * 24 * threads);
  run(*kernel(3), Probe::places, shape, {}, out);
  std::size_t at = 0;
  for (std::uint32_t block = 0; block < 24; ++block)
    for (std::uint32_t thread = 0; thread < threads; ++thread, at += 8) {
      const Words place(out.begin() + static_cast<std::ptrdiff_t>(at),
                        out.begin() + static_cast<std::ptrdiff_t>(at + 8));
      REQUIRE(place == Words{thread % 5, thread / 5 % 3, thread / 15, block % 2, block / 2 % 3, block / 6,
                             thread % 32, thread / 32});
    }
}

TEST_CASE("Parameters of every size arrive, a struct too") {
  struct Tail {
    double x;
    std::int32_t y;
  };
  const Binary params = compile_for_host(R"(#include "device/prelude.cuh"
using namespace jitsmith;
struct Tail { double x; int32 y; };
template <class T>
JITSMITH_KERNEL void JITSMITH_LAUNCH_BOUNDS(1) sum(int8 a, uint16 b, T c, int64 d, Tail e, bool f, double* out) {
  *out = a + b + static_cast<double>(c) + static_cast<double>(d) + e.x + e.y + f;
})",
                                         "sum<float>");
  double out = 0;
  launch(*load_host_kernel(params), {}, std::int8_t{-1}, std::uint16_t{65535}, 0.5f, std::int64_t{1} << 40,
         Tail{0.25, 7}, true, &out);
  CHECK(out == -1 + 65535 + 0.5 + static_cast<double>(std::int64_t{1} << 40) + 0.25 + 7 + 1);
}

TEST_CASE("Threads that have exited count as arrived at a barrier") {
  const Words in = counting(64);
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const std::uint32_t n : {1u, 31u, 40u, 63u}) {
      Words out(64);
      run(*kernel(seed), Probe::early_exit, line(1, 64), in, out, n);
      CHECK(std::equal(out.begin(), out.begin() + n, in.rend() - n));
    }
}

TEST_CASE("A barrier that part of a block never reaches is an error that counts who waits where") {
  const auto loaded = kernel();
  const std::string text = message(*loaded, Probe::divergent_barrier, line(2, 64));
  CHECK_CONTAINS(
      text, "jitsmith::probe: in block (0, 0, 0), no thread can go on: of 64 threads, 48 waiting at the " +
                ("barrier of " + line_of(k_kernel, "barrier() {")));
  CHECK_CONTAINS(text, "16 waiting at the warp operation of probe.cu:");
  CHECK_CONTAINS(text, "with mask 0xffffffff");
}

TEST_CASE("Threads at different barriers are an error") {
  const std::string text = message(*kernel(), Probe::two_barriers, line(1, 64), 20);
  CHECK_CONTAINS(text, "some threads wait at the barrier of probe.cu:");
  CHECK(message(*kernel(), Probe::two_barriers, line(1, 64), 64) == "no error");
  CHECK(message(*kernel(), Probe::two_barriers, line(1, 64), 0) == "no error");
}

TEST_CASE("Misused warp operations are errors") {
  const auto loaded = kernel(9);
  CHECK_CONTAINS(message(*loaded, Probe::own_lane_missing, line(1, 32)),
                 "lane 3 calls a warp operation with mask 0xfffffff7, which leaves it out");
  const std::string exited = message(*loaded, Probe::exited_lane, line(1, 32));
  CHECK_CONTAINS(exited, "of 32 threads, 1 exited, 31 waiting at the warp operation of probe.cu:");
  const std::string masks = message(*loaded, Probe::other_mask, line(1, 32));
  CHECK_CONTAINS(masks, "16 waiting at the barrier");
  CHECK_CONTAINS(masks, "16 waiting at the warp operation");
  CHECK_CONTAINS(message(*loaded, Probe::other_operation, line(1, 32)),
                 "of warp 0 meet at different warp operations");
}

TEST_CASE("Lanes with several masks complete in any order; a partial warp takes the full mask") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Words out(8);
    run(*kernel(seed), Probe::overlapping_masks, line(1, 8), {}, out);
    CHECK(Words(out.begin(), out.begin() + 5) == Words{14, 14, 14, 14, 14});
    Words order(1 + 40);
    run(*kernel(seed), Probe::order, line(1, 40), {}, order);
    CHECK(order[0] == 40);
  }
}

TEST_CASE("Two sizes of static shared memory in one block are an error") {
  CHECK_CONTAINS(message(*kernel(), Probe::two_sizes, line(1, 32)),
                 "asks for 20 bytes of static shared memory, but the block has 252");
}

TEST_CASE("An impossible launch shape is an error") {
  const auto loaded = kernel();
  for (const LaunchShape& shape : {line(0, 32), line(1, 0), line(1, 1025), LaunchShape{.block = {32, 32, 2}}})
    CHECK_CONTAINS(message(*loaded, Probe::order, shape), "a block has 1 to 1024 threads");
}

TEST_CASE("After an error the next launch works") {
  const auto loaded = kernel(2);
  const Words in = counting(64);
  for (int i = 0; i < 3; ++i) {
    CHECK(message(*loaded, Probe::divergent_barrier, line(2, 64)) != "no error");
    Words out(64);
    run(*loaded, Probe::reverse_dynamic, line(1, 64), in, out);
    CHECK(out == reversed_blocks(in, 64));
  }
}

TEST_CASE("Launches from several OS threads at once do not disturb each other [tsan]") {
  const auto loaded = kernel(7);
  std::array<bool, 4> right{};
  std::vector<std::thread> workers;
  for (std::uint32_t id = 0; id < right.size(); ++id)
    workers.emplace_back([&, id] {
      right[id] = true;
      for (std::uint32_t round = 0; round < 10; ++round) {
        const std::uint32_t threads = 32 * (1 + (id + round) % 3);
        Words in(3 * threads, id * 1000 + round), out(3);
        run(*loaded, Probe::block_sums, line(3, threads), in, out, 2);
        const float expected = static_cast<float>(in[0]) * static_cast<float>(threads);
        for (const std::uint32_t word : out) right[id] = right[id] && std::bit_cast<float>(word) == expected;
        if (round % 3 == 0)
          right[id] = right[id] && message(*loaded, Probe::divergent_barrier, line(1, threads)) != "no error";
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(right == std::array<bool, 4>{true, true, true, true});
}

TEST_CASE("Several kernels are loaded at once, and again after others are gone") {
  const auto text = [](int value) {
    return "#include \"device/prelude.cuh\"\nvoid put(int* out) { *out = " + std::to_string(value) + "; }\n";
  };
  const Binary one = compile_for_host(text(1), "put"), two = compile_for_host(text(2), "put");
  const auto value_of = [](const LoadedKernel& loaded) {
    int value = 0;
    launch(loaded, {}, &value);
    return value;
  };
  auto first = load_host_kernel(one);
  const auto second = load_host_kernel(two), third = load_host_kernel(one);
  CHECK(value_of(*first) == 1);
  CHECK(value_of(*second) == 2);
  CHECK(value_of(*third) == 1);
  first.reset();
  first = load_host_kernel(two);
  CHECK(value_of(*first) == 2);
  CHECK(value_of(*third) == 1);
}

TEST_CASE("A binary that is no kernel, or another kernel than its facts say, is refused") {
  Binary garbage = binary();
  garbage.code.resize(100);
  CHECK_THROWS_WITH_AS(load_host_kernel(garbage), doctest::Contains("cannot load the host kernel"),
                       HostKernelError);
  Binary other = binary();
  other.facts.param_bytes = {4, 8};
  CHECK_THROWS_WITH_AS(load_host_kernel(other), doctest::Contains("its facts say [4, 8]"), HostKernelError);
  other = binary();
  other.facts.lowered_name = "nothing";
  CHECK_THROWS_WITH_AS(load_host_kernel(other), doctest::Contains("does not export nothing"),
                       HostKernelError);
}

TEST_CASE("AddressSanitizer sees a read past the end of shared and of global memory, at its line") {
#ifdef __SANITIZE_ADDRESS__
  CHECK(message(*kernel(), Probe::past_nothing, line(1, 32), 64) == "no error");
  const std::string past_static = death_cry(Probe::past_static, line(1, 32), 32);
  CHECK_CONTAINS(past_static, "heap-buffer-overflow");
  CHECK_CONTAINS(past_static, line_of(k_kernel, "block_shared<Shared>().values)[n + thread]"));
  const std::string past_dynamic = death_cry(Probe::past_dynamic, line(1, 32), 1);
  CHECK_CONTAINS(past_dynamic, "heap-buffer-overflow");
  CHECK_CONTAINS(past_dynamic, line_of(k_kernel, "dynamic[n + thread]"));
  const std::string past_input = death_cry(Probe::past_input, line(1, 32), 33);
  CHECK_CONTAINS(past_input, "heap-buffer-overflow");
  CHECK_CONTAINS(past_input, line_of(k_kernel, "in[n + thread]"));
#else
  MESSAGE("SKIP: this build has no AddressSanitizer");
#endif
}
