#include <jitsmith/runtime/fiber_block.hpp>

#include <algorithm>
#include <cstring>
#include <map>
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

struct FiberBlock::Thread {
  enum class State { fresh, ready, at_barrier, at_warp_operation, exited };

  Thread(FiberBlock& owner, StackPool& stacks) : block(owner), fiber(stacks, &FiberBlock::run_thread, this) {}

  FiberBlock& block;
  Fiber fiber;
  JitsmithHostThread view{};  // what the kernel sees
  State state = State::exited;
  JitsmithHostSite site{};  // where it waits

  // Its part in the warp operation at which it waits.
  std::uint32_t mask = 0;
  std::uint32_t bytes = 0;
  const void* mine = nullptr;
  void* all = nullptr;
};

using State = FiberBlock::Thread::State;

FiberBlock::FiberBlock(StackPool& stacks, const JitsmithHostKernel& kernel, const LaunchShape& shape,
                       void* const* args)
    : kernel_(kernel), shape_(shape), args_(args), slot_(kernel.current()) {
  const auto& extent = shape.block;
  const std::size_t count = std::size_t{extent[0]} * extent[1] * extent[2];
  warps_.resize((count + k_lanes - 1) / k_lanes);
  for (std::uint32_t linear = 0; linear < count; ++linear) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>(*this, stacks));
    thread.view = {
        .thread = {linear % extent[0], linear / extent[0] % extent[1], linear / extent[0] / extent[1]},
        .block = {},
        .block_dim = {extent[0], extent[1], extent[2]},
        .grid_dim = {shape.grid[0], shape.grid[1], shape.grid[2]},
        .lane = linear % k_lanes,
        .warp = linear / k_lanes,
        .fiber = &thread};
    warps_[thread.view.warp].present |= 1u << thread.view.lane;
  }
}

FiberBlock::~FiberBlock() {
  *slot_ = nullptr;
}

void FiberBlock::run(const std::array<std::uint32_t, 3>& block_index, RandomOrder* order) {
  order_ = order;
  start(block_index);
  while (!ready_.empty() && error_ == nullptr) resume(next_ready());
  if (error_ == nullptr && exited_ != threads_.size()) report_stall();
  if (error_ != nullptr) {
    end_waiting_threads();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void FiberBlock::start(const std::array<std::uint32_t, 3>& block_index) {
  // Two ways to be unfair: the threads that became ready last go first, so that a warp runs as far ahead of
  // the others as barriers let it; or any ready thread goes, so that all interleave.
  depth_first_ = order_ == nullptr || order_->below(2) == 0;
  exited_ = at_barrier_ = 0;
  static_shared_fixed_ = dynamic_shared_fixed_ = false;
  for (Warp& warp : warps_) warp.waiting = 0;
  ready_.clear();
  for (const auto& thread : threads_) {
    std::ranges::copy(block_index, thread->view.block);
    thread->state = State::fresh;
    ready_.push_back(thread.get());
  }
  make_ready(0);
}

void FiberBlock::resume(Thread& thread) {
  *slot_ = &thread.view;
  thread.fiber.resume();
}

void FiberBlock::run_thread(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  FiberBlock& block = thread.block;
  try {
    block.kernel_.run_thread(block.args_);
  } catch (const EndThread&) {
  } catch (...) {
    if (block.error_ == nullptr) block.error_ = std::current_exception();
  }
  thread.state = State::exited;
  ++block.exited_;
  if (block.error_ == nullptr) block.complete_barrier();  // a thread that has exited counts as arrived
}

void FiberBlock::wait(Thread& thread) {
  thread.fiber.suspend();
  if (error_ != nullptr) throw EndThread{};
}

FiberBlock::Thread& FiberBlock::next_ready() {
  if (!depth_first_) std::swap(ready_[order_->below(ready_.size())], ready_.back());
  Thread& thread = *ready_.back();
  ready_.pop_back();
  return thread;
}

// The threads from `first_of_batch` on were appended in ascending order.
void FiberBlock::make_ready(std::size_t first_of_batch) {
  const std::span batch = std::span(ready_).subspan(first_of_batch);
  if (order_ != nullptr)
    order_->shuffle(batch);
  else
    std::ranges::reverse(batch);
}

void FiberBlock::sync_block(Thread& thread, JitsmithHostSite site) {
  thread.state = State::at_barrier;
  thread.site = site;
  ++at_barrier_;
  complete_barrier();
  wait(thread);
}

void FiberBlock::complete_barrier() {
  if (at_barrier_ == 0 || at_barrier_ + exited_ != threads_.size()) return;
  const std::size_t first = ready_.size();
  for (const auto& thread : threads_)
    if (thread->state == State::at_barrier) ready_.push_back(thread.get());
  for (Thread* thread : std::span(ready_).subspan(first)) {
    if (!same(thread->site, ready_[first]->site))
      return report(fmt::format(
          "some threads wait at the barrier of {} and others at that of {}; all must reach the same one",
          text_of(ready_[first]->site), text_of(thread->site)));
    thread->state = State::ready;
  }
  at_barrier_ = 0;
  make_ready(first);
}

void FiberBlock::exchange_warp(Thread& thread, std::uint32_t mask, const void* mine, std::uint32_t bytes,
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
  warps_[thread.view.warp].waiting |= bit;
  complete_exchange(thread);
  wait(thread);
}

void FiberBlock::complete_exchange(Thread& last) {
  Warp& warp = warps_[last.view.warp];
  const std::uint32_t wanted = last.mask & warp.present;
  if ((warp.waiting & wanted) != wanted) return;

  const std::size_t first = ready_.size();
  for (std::uint32_t lane = 0; lane < k_lanes; ++lane)
    if ((wanted >> lane & 1) != 0)
      ready_.push_back(threads_[std::size_t{last.view.warp} * k_lanes + lane].get());
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
      return report(fmt::format("lanes {} and {} of warp {} meet at different warp operations, of {} and {}",
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

void* FiberBlock::static_shared(Thread& thread, std::size_t bytes, std::size_t align) {
  if (!static_shared_fixed_) {
    static_shared_fixed_ = true;
    return static_shared_.renew(bytes, align);
  }
  if (bytes != static_shared_.bytes())
    fail(thread, fmt::format("asks for {} bytes of static shared memory, but the block has {}; a kernel has "
                             "one block_shared type",
                             bytes, static_shared_.bytes()));
  return static_shared_.data();
}

void* FiberBlock::dynamic_shared() {
  if (!dynamic_shared_fixed_) {
    dynamic_shared_fixed_ = true;
    return dynamic_shared_.renew(shape_.dynamic_shared_bytes, k_dynamic_shared_align);
  }
  return dynamic_shared_.data();
}

void FiberBlock::fail(const Thread& thread, std::string_view what) {
  report(fmt::format("thread ({}) {}", fmt::join(thread.view.thread, ", "), what));
  throw EndThread{};
}

// The first mistake of a block is the one that is told.
void FiberBlock::report(std::string_view what) {
  if (error_ == nullptr)
    error_ = std::make_exception_ptr(HostKernelError(fmt::format(
        "{}: in block ({}), {}", kernel_.name, fmt::join(threads_.front()->view.block, ", "), what)));
}

void FiberBlock::report_stall() {
  std::map<std::string, std::size_t> counts;
  for (const auto& thread : threads_) {
    if (thread->state == State::exited)
      ++counts["exited"];
    else if (thread->state == State::at_barrier)
      ++counts[fmt::format("waiting at the barrier of {}", text_of(thread->site))];
    else
      ++counts[fmt::format("waiting at the warp operation of {} with mask {:#010x}", text_of(thread->site),
                           thread->mask)];
  }
  std::vector<std::string> groups;
  for (const auto& [what, count] : counts) groups.push_back(fmt::format("{} {}", count, what));
  report(fmt::format(
      "no thread can go on: of {} threads, {}; a barrier needs every thread that has not exited, a warp "
      "operation every lane of its mask",
      threads_.size(), fmt::join(groups, ", ")));
}

// Unwinds the fibers that are inside the kernel, so that they can run another block.
void FiberBlock::end_waiting_threads() {
  for (const auto& thread : threads_)
    if (thread->state != State::fresh && thread->state != State::exited) resume(*thread);
}

namespace {

FiberBlock::Thread& thread_of(JitsmithHostThread* view) {
  return *static_cast<FiberBlock::Thread*>(view->fiber);
}

}  // namespace

const JitsmithHostApi& host_api() {
  static constexpr JitsmithHostApi api{
      .sync_block = [](JitsmithHostThread* view,
                       JitsmithHostSite site) { thread_of(view).block.sync_block(thread_of(view), site); },
      .exchange_warp =
          [](JitsmithHostThread* view, unsigned mask, const void* mine, unsigned size, void* all,
             JitsmithHostSite site) {
            thread_of(view).block.exchange_warp(thread_of(view), mask, mine, size, all, site);
          },
      .static_shared = [](JitsmithHostThread* view, unsigned long size, unsigned long align) -> void* {
        return thread_of(view).block.static_shared(thread_of(view), size, align);
      },
      .dynamic_shared = [](JitsmithHostThread* view) -> void* {
        return thread_of(view).block.dynamic_shared();
      },
      .fail =
          [](JitsmithHostThread* view, const char* what, JitsmithHostSite site) {
            thread_of(view).block.fail(thread_of(view), fmt::format("{}, {}:{}", what, site.file, site.line));
          },
  };
  return api;
}

}  // namespace jitsmith
