#include <jitsmith/runtime/fiber_cluster.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/runtime/host_executor.hpp>

namespace jitsmith {
namespace {

constexpr std::uint32_t k_lanes = JITSMITH_HOST_WARP_LANES;

// CUDA promises 16 bytes; templates/device/shared.cuh asks for this much.
constexpr std::size_t k_dynamic_shared_align = 128;

// Ends a thread of a block that has failed: thrown through the kernel, caught in run_thread.
struct EndThread {};

bool same(const JitsmithHostSite& a, const JitsmithHostSite& b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
}

std::string text_of(const JitsmithHostSite& site) {
  return fmt::format("{}:{}", site.file, site.line);
}

}  // namespace

struct FiberCluster::Block {
  struct Warp {
    std::uint32_t present = 0;  // lanes that the block has
    std::uint32_t waiting = 0;  // lanes that wait at a warp operation
  };

  std::span<const std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::array<std::uint32_t, 3> index{};
  std::size_t exited = 0;
  std::size_t at_barrier = 0;
  bool static_shared_fixed = false;
  bool dynamic_shared_fixed = false;
  bool waited_for_dependency = false;
  SharedRegion static_shared;
  SharedRegion dynamic_shared;

  bool ended() const { return exited == threads.size(); }
};

struct FiberCluster::Thread {
  enum class State { fresh, ready, at_barrier, at_warp_operation, at_cluster_barrier, exited };

  Thread(FiberCluster& owner, Block& its_block, StackPool& stacks)
      : cluster(owner), block(its_block), fiber(stacks, &FiberCluster::run_thread, this) {}

  FiberCluster& cluster;
  Block& block;
  Fiber fiber;
  JitsmithHostThread view{};  // what the kernel sees
  State state = State::exited;
  JitsmithHostSite site{};  // where it waits

  // Its part in the warp operation at which it waits.
  std::uint32_t mask = 0;
  std::uint32_t bytes = 0;
  const void* mine = nullptr;
  void* all = nullptr;

  // The phase of the cluster's barrier in which it arrived and for whose end it has not waited yet.
  std::optional<std::uint64_t> arrived;
};

using State = FiberCluster::Thread::State;

FiberCluster::FiberCluster(StackPool& stacks, const JitsmithHostKernel& kernel, const LaunchShape& shape,
                           void* const* args)
    : kernel_(kernel), shape_(shape), args_(args), slot_(kernel.current()) {
  const auto& extent = shape.block;
  const std::size_t count = std::size_t{extent[0]} * extent[1] * extent[2];
  for (std::uint32_t rank = 0; rank < shape.cluster; ++rank) {
    Block& block = *blocks_.emplace_back(std::make_unique<Block>());
    block.warps.resize((count + k_lanes - 1) / k_lanes);
    for (std::uint32_t linear = 0; linear < count; ++linear) {
      Thread& thread = *threads_.emplace_back(std::make_unique<Thread>(*this, block, stacks));
      thread.view = {
          .thread = {linear % extent[0], linear / extent[0] % extent[1], linear / extent[0] / extent[1]},
          .block = {},
          .block_dim = {extent[0], extent[1], extent[2]},
          .grid_dim = {shape.grid[0], shape.grid[1], shape.grid[2]},
          .lane = linear % k_lanes,
          .warp = linear / k_lanes,
          .cluster_rank = rank,
          .fiber = &thread};
      block.warps[thread.view.warp].present |= 1u << thread.view.lane;
    }
  }
  for (std::size_t rank = 0; rank < blocks_.size(); ++rank)
    blocks_[rank]->threads = std::span(threads_).subspan(rank * count, count);
}

FiberCluster::~FiberCluster() {
  *slot_ = nullptr;
}

void FiberCluster::run(const std::array<std::uint32_t, 3>& first_block, RandomOrder* order) {
  order_ = order;
  start(first_block);
  while (!ready_.empty() && error_ == nullptr) resume(next_ready());
  if (error_ == nullptr && exited_ != threads_.size()) report_stall();
  if (error_ != nullptr) {
    end_waiting_threads();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void FiberCluster::start(const std::array<std::uint32_t, 3>& first_block) {
  // Two ways to be unfair: the threads that became ready last go first, so that a warp runs as far ahead of
  // the others as barriers let it; or any ready thread goes, so that all interleave.
  depth_first_ = order_ == nullptr || order_->below(2) == 0;
  exited_ = arrived_ = phase_ = 0;
  for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) {
    Block& block = *blocks_[rank];
    block.index = {first_block[0] + rank, first_block[1], first_block[2]};
    block.exited = block.at_barrier = 0;
    block.static_shared_fixed = block.dynamic_shared_fixed = block.waited_for_dependency = false;
    for (Block::Warp& warp : block.warps) warp.waiting = 0;
  }
  ready_.clear();
  for (const auto& thread : threads_) {
    std::ranges::copy(thread->block.index, thread->view.block);
    thread->state = State::fresh;
    thread->arrived.reset();
    ready_.push_back(thread.get());
  }
  make_ready(0);
}

void FiberCluster::resume(Thread& thread) {
  *slot_ = &thread.view;
  thread.fiber.resume();
}

void FiberCluster::run_thread(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  FiberCluster& cluster = thread.cluster;
  try {
    cluster.kernel_.run_thread(cluster.args_);
  } catch (const EndThread&) {
  } catch (...) {
    if (cluster.error_ == nullptr) cluster.error_ = std::current_exception();
  }
  cluster.exit(thread);
}

// A thread that has exited counts as arrived at every barrier.
void FiberCluster::exit(Thread& thread) {
  Block& block = thread.block;
  thread.state = State::exited;
  ++block.exited;
  ++exited_;
  if (thread.arrived == phase_) --arrived_;
  if (error_ != nullptr) return;
  if (block.ended() && shape_.programmatic && !block.waited_for_dependency)
    return report(
        block,
        "every thread exited without a call of wait_for_dependency(), which a programmatic launch needs "
        "before it reads what the kernel in front writes");
  if (block.ended() && blocks_.size() > 1) {
    // What the others still read there shows.
    block.static_shared.poison();
    block.dynamic_shared.poison();
  }
  complete_barrier(block);
  complete_cluster_barrier();
}

void FiberCluster::wait(Thread& thread) {
  thread.fiber.suspend();
  if (error_ != nullptr) throw EndThread{};
}

FiberCluster::Thread& FiberCluster::next_ready() {
  if (!depth_first_) std::swap(ready_[order_->below(ready_.size())], ready_.back());
  Thread& thread = *ready_.back();
  ready_.pop_back();
  return thread;
}

// The threads from `first_of_batch` on were appended in ascending order.
void FiberCluster::make_ready(std::size_t first_of_batch) {
  const std::span batch = std::span(ready_).subspan(first_of_batch);
  if (order_ != nullptr)
    order_->shuffle(batch);
  else
    std::ranges::reverse(batch);
}

void FiberCluster::sync_block(Thread& thread, JitsmithHostSite site) {
  thread.state = State::at_barrier;
  thread.site = site;
  ++thread.block.at_barrier;
  complete_barrier(thread.block);
  wait(thread);
}

void FiberCluster::complete_barrier(Block& block) {
  if (block.at_barrier == 0 || block.at_barrier + block.exited != block.threads.size()) return;
  const std::size_t first = ready_.size();
  for (const auto& thread : block.threads)
    if (thread->state == State::at_barrier) ready_.push_back(thread.get());
  for (Thread* thread : std::span(ready_).subspan(first)) {
    if (!same(thread->site, ready_[first]->site))
      return report(block,
                    fmt::format("some threads wait at the barrier of {} and others at that of {}; all must "
                                "reach the same one",
                                text_of(ready_[first]->site), text_of(thread->site)));
    thread->state = State::ready;
  }
  block.at_barrier = 0;
  make_ready(first);
}

void FiberCluster::arrive_cluster(Thread& thread, JitsmithHostSite site) {
  thread.site = site;
  if (thread.arrived)
    fail(thread,
         fmt::format("arrives at the cluster's barrier twice, {}; it must wait in between", text_of(site)));
  thread.arrived = phase_;
  ++arrived_;
  complete_cluster_barrier();
}

void FiberCluster::wait_cluster(Thread& thread, JitsmithHostSite site) {
  thread.site = site;
  if (!thread.arrived)
    fail(thread, fmt::format("waits at the cluster's barrier, {}, where it has not arrived", text_of(site)));
  if (*thread.arrived == phase_) {
    thread.state = State::at_cluster_barrier;
    wait(thread);
  }
  thread.arrived.reset();
}

void FiberCluster::complete_cluster_barrier() {
  if (arrived_ == 0 || arrived_ + exited_ != threads_.size()) return;
  arrived_ = 0;
  ++phase_;
  const std::size_t first = ready_.size();
  for (const auto& thread : threads_)
    if (thread->state == State::at_cluster_barrier) {
      thread->state = State::ready;
      ready_.push_back(thread.get());
    }
  make_ready(first);
}

void FiberCluster::exchange_warp(Thread& thread, std::uint32_t mask, const void* mine, std::uint32_t bytes,
                                 void* all, JitsmithHostSite site) {
  const std::uint32_t bit = 1u << thread.view.lane;
  thread.site = site;
  if ((mask & bit) == 0)
    fail(thread, fmt::format("lane {} calls a warp operation with mask {:#010x}, which leaves it out",
                             thread.view.lane, mask));
  thread.state = State::at_warp_operation;
  thread.mask = mask;
  thread.bytes = bytes;
  thread.mine = mine;
  thread.all = all;
  thread.block.warps[thread.view.warp].waiting |= bit;
  complete_exchange(thread);
  wait(thread);
}

void FiberCluster::complete_exchange(Thread& last) {
  Block& block = last.block;
  Block::Warp& warp = block.warps[last.view.warp];
  const std::uint32_t wanted = last.mask & warp.present;
  if ((warp.waiting & wanted) != wanted) return;

  const std::size_t first = ready_.size();
  for (std::uint32_t lane = 0; lane < k_lanes; ++lane)
    if ((wanted >> lane & 1) != 0)
      ready_.push_back(block.threads[std::size_t{last.view.warp} * k_lanes + lane].get());
  const std::span lanes = std::span(ready_).subspan(first);
  if (std::ranges::any_of(lanes, [&](const Thread* lane) { return lane->mask != last.mask; })) {
    ready_.resize(first);  // one of them waits for other lanes first
    return;
  }

  alignas(JITSMITH_HOST_LANE_BYTES) std::array<std::byte, k_lanes * JITSMITH_HOST_LANE_BYTES> values;
  values.fill(std::byte{0xff});
  for (const Thread* lane : lanes) {
    // __syncwarp, alone of them, may meet itself at another place.
    if (lane->bytes != last.bytes || (last.bytes != 0 && !same(lane->site, last.site)))
      return report(block,
                    fmt::format("lanes {} and {} of warp {} meet at different warp operations, of {} and {}",
                                lane->view.lane, last.view.lane, last.view.warp, text_of(lane->site),
                                text_of(last.site)));
    if (last.bytes != 0)
      std::memcpy(values.data() + std::size_t{lane->view.lane} * JITSMITH_HOST_LANE_BYTES, lane->mine,
                  last.bytes);
  }
  for (Thread* lane : lanes) {
    if (last.bytes != 0) std::memcpy(lane->all, values.data(), values.size());
    lane->state = State::ready;
  }
  warp.waiting &= ~wanted;
  make_ready(first);
}

void* FiberCluster::static_shared(Thread& thread, std::size_t bytes, std::size_t align) {
  Block& block = thread.block;
  if (!block.static_shared_fixed) {
    block.static_shared_fixed = true;
    return block.static_shared.renew(bytes, align);
  }
  if (bytes != block.static_shared.bytes())
    fail(thread, fmt::format("asks for {} bytes of static shared memory, but the block has {}; a kernel has "
                             "one block_shared type",
                             bytes, block.static_shared.bytes()));
  return block.static_shared.data();
}

void* FiberCluster::dynamic_shared(Thread& thread) {
  Block& block = thread.block;
  if (!block.dynamic_shared_fixed) {
    block.dynamic_shared_fixed = true;
    return block.dynamic_shared.renew(shape_.dynamic_shared_bytes, k_dynamic_shared_align);
  }
  return block.dynamic_shared.data();
}

void* FiberCluster::map_shared(Thread& thread, void* mine, std::uint32_t rank, JitsmithHostSite site) {
  if (rank >= blocks_.size())
    fail(thread, fmt::format("maps shared memory of block {} of a cluster of {}, {}", rank, blocks_.size(),
                             text_of(site)));
  Block& own = thread.block;
  Block& other = *blocks_[rank];
  const bool in_static = own.static_shared_fixed && own.static_shared.holds(mine);
  if (!in_static && !(own.dynamic_shared_fixed && own.dynamic_shared.holds(mine)))
    fail(thread, fmt::format("maps an address that is not in its shared memory, {}", text_of(site)));
  if (other.ended() || !(in_static ? other.static_shared_fixed : other.dynamic_shared_fixed))
    fail(thread,
         fmt::format(
             "maps shared memory of block {} of its cluster, which {}, {}; a cluster barrier must come "
             "between",
             rank, other.ended() ? "has ended" : "may not have begun", text_of(site)));
  const SharedRegion &from = in_static ? own.static_shared : own.dynamic_shared,
                     &to = in_static ? other.static_shared : other.dynamic_shared;
  return static_cast<std::byte*>(to.data()) +
         (static_cast<std::byte*>(mine) - static_cast<std::byte*>(from.data()));
}

void FiberCluster::wait_for_dependency(Thread& thread) {
  thread.block.waited_for_dependency = true;
}

void FiberCluster::fail(const Thread& thread, std::string_view what) {
  report(thread.block, fmt::format("thread ({}) {}", fmt::join(thread.view.thread, ", "), what));
  throw EndThread{};
}

// The first mistake of a cluster is the one that is told.
void FiberCluster::report(const Block& block, std::string_view what) {
  if (error_ == nullptr)
    error_ = std::make_exception_ptr(HostKernelError(
        fmt::format("{}: in block ({}), {}", kernel_.name, fmt::join(block.index, ", "), what)));
}

void FiberCluster::report_stall() {
  std::map<std::string, std::size_t> counts;
  for (const auto& thread : threads_) {
    if (thread->state == State::exited)
      ++counts["exited"];
    else if (thread->state == State::at_barrier)
      ++counts[fmt::format("waiting at the barrier of {}", text_of(thread->site))];
    else if (thread->state == State::at_cluster_barrier)
      ++counts[fmt::format("waiting at the cluster's barrier of {}", text_of(thread->site))];
    else
      ++counts[fmt::format("waiting at the warp operation of {} with mask {:#010x}", text_of(thread->site),
                           thread->mask)];
  }
  std::vector<std::string> groups;
  for (const auto& [what, count] : counts) groups.push_back(fmt::format("{} {}", count, what));
  report(
      *blocks_.front(),
      fmt::format(
          "no thread can go on: of {} threads, {}; a barrier needs every thread that has not exited, a warp "
          "operation every lane of its mask",
          threads_.size(), fmt::join(groups, ", ")));
}

// Unwinds the fibers that are inside the kernel, so that they can run another block.
void FiberCluster::end_waiting_threads() {
  for (const auto& thread : threads_)
    if (thread->state != State::fresh && thread->state != State::exited) resume(*thread);
}

namespace {

FiberCluster::Thread& thread_of(JitsmithHostThread* view) {
  return *static_cast<FiberCluster::Thread*>(view->fiber);
}

}  // namespace

const JitsmithHostApi& host_api() {
  static constexpr JitsmithHostApi api{
      .sync_block = [](JitsmithHostThread* view,
                       JitsmithHostSite site) { thread_of(view).cluster.sync_block(thread_of(view), site); },
      .exchange_warp =
          [](JitsmithHostThread* view, unsigned mask, const void* mine, unsigned size, void* all,
             JitsmithHostSite site) {
            thread_of(view).cluster.exchange_warp(thread_of(view), mask, mine, size, all, site);
          },
      .static_shared = [](JitsmithHostThread* view, unsigned long size, unsigned long align) -> void* {
        return thread_of(view).cluster.static_shared(thread_of(view), size, align);
      },
      .dynamic_shared = [](JitsmithHostThread* view) -> void* {
        return thread_of(view).cluster.dynamic_shared(thread_of(view));
      },
      .arrive_cluster =
          [](JitsmithHostThread* view, JitsmithHostSite site) {
            thread_of(view).cluster.arrive_cluster(thread_of(view), site);
          },
      .wait_cluster =
          [](JitsmithHostThread* view, JitsmithHostSite site) {
            thread_of(view).cluster.wait_cluster(thread_of(view), site);
          },
      .map_shared = [](JitsmithHostThread* view, void* mine, unsigned rank, JitsmithHostSite site) -> void* {
        return thread_of(view).cluster.map_shared(thread_of(view), mine, rank, site);
      },
      .wait_for_dependency =
          [](JitsmithHostThread* view) { thread_of(view).cluster.wait_for_dependency(thread_of(view)); },
      .fail =
          [](JitsmithHostThread* view, const char* what, JitsmithHostSite site) {
            thread_of(view).cluster.fail(thread_of(view),
                                         fmt::format("{}, {}:{}", what, site.file, site.line));
          },
  };
  return api;
}

}  // namespace jitsmith
