// FiberCluster: the threads of the blocks of one cluster as fibers, and the scheduler that runs them until
// all have exited. Without clusters it is one block.
//
// A thread runs until it waits at a barrier or a warp operation. When what it waits for is complete, all
// threads that wait there become ready. When no thread is ready and not all have exited, the kernel is wrong.
// Clusters of one launch run one after another on the same fibers.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include <jitsmith/templates/device/host_api.h>
#include <jitsmith/runtime/fiber.hpp>
#include <jitsmith/runtime/launch_shape.hpp>
#include <jitsmith/runtime/random_order.hpp>
#include <jitsmith/runtime/shared_region.hpp>
#include <jitsmith/runtime/stack_pool.hpp>

namespace jitsmith {

// What kernels call; handed to each once after loading.
const JitsmithHostApi& host_api();

class FiberCluster {
 public:
  // All must outlive the object, which belongs to the calling OS thread.
  FiberCluster(StackPool& stacks, const JitsmithHostKernel& kernel, const LaunchShape& shape,
               void* const* args);
  ~FiberCluster();

  // Runs the cluster whose block of rank 0 is this one, to its end; `order` decides among ready threads, null
  // means ascending. Throws HostKernelError, after which another cluster can be run.
  void run(const std::array<std::uint32_t, 3>& first_block, RandomOrder* order);

  struct Thread;

  // What the interface to kernels offers, called on a thread's fiber.
  void sync_block(Thread& thread, JitsmithHostSite site);
  void exchange_warp(Thread& thread, std::uint32_t mask, const void* mine, std::uint32_t bytes, void* all,
                     JitsmithHostSite site);
  void arrive_cluster(Thread& thread, JitsmithHostSite site);
  void wait_cluster(Thread& thread, JitsmithHostSite site);
  void* static_shared(Thread& thread, std::size_t bytes, std::size_t align);
  void* dynamic_shared(Thread& thread);
  void* map_shared(Thread& thread, void* mine, std::uint32_t rank, JitsmithHostSite site);
  void wait_for_dependency(Thread& thread);
  [[noreturn]] void fail(const Thread& thread, std::string_view what);

 private:
  struct Block;

  static void run_thread(void* thread);
  void start(const std::array<std::uint32_t, 3>& first_block);
  void resume(Thread& thread);
  void wait(Thread& thread);
  void exit(Thread& thread);
  Thread& next_ready();
  void make_ready(std::size_t first_of_batch);
  void complete_barrier(Block& block);
  void complete_cluster_barrier();
  void complete_exchange(Thread& last);
  void report(const Block& block, std::string_view what);
  void report_stall();
  void end_waiting_threads();

  const JitsmithHostKernel& kernel_;
  const LaunchShape& shape_;
  void* const* args_;
  JitsmithHostThread** slot_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Thread>> threads_;  // block by block
  std::vector<Thread*> ready_;                    // the next to run is at the back

  // Of the cluster that runs now.
  RandomOrder* order_ = nullptr;
  bool depth_first_ = true;
  std::size_t exited_ = 0;
  std::size_t arrived_ = 0;  // at the cluster's barrier, in the current phase
  std::uint64_t phase_ = 0;  // of the cluster's barrier
  std::exception_ptr error_;
};

}  // namespace jitsmith
