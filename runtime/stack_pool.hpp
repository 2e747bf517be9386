// Stacks for fibers, each with a guard page below it, so that a kernel that overflows its stack faults at
// once. Mapping one costs more than a short kernel does: stacks given back are kept for the next launch.
#pragma once

#include <cstddef>
#include <vector>

#include <boost/context/protected_fixedsize_stack.hpp>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/runtime/sanitizer_fiber.hpp>

namespace jitsmith {

// Thread safe.
class StackPool {
 public:
  StackPool() = default;
  // All stacks must have been given back.
  ~StackPool() {
    for (boost::context::stack_context& stack : idle_) allocator_.deallocate(stack);
  }
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  boost::context::stack_context take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      idle_.reserve(++made_);  // so that give_back never allocates
      return allocator_.allocate();
    }
    const boost::context::stack_context stack = idle_.back();
    idle_.pop_back();
    return stack;
  }

  void give_back(const boost::context::stack_context& stack) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.push_back(stack);
  }

 private:
  // Kernels keep tiles in local arrays, and sanitizers spread frames out. Untouched pages cost nothing.
#if defined(JITSMITH_ASAN_FIBERS) || defined(JITSMITH_TSAN_FIBERS)
  static constexpr std::size_t k_stack_bytes = 512 * 1024;
#else
  static constexpr std::size_t k_stack_bytes = 128 * 1024;
#endif

  boost::context::protected_fixedsize_stack allocator_{k_stack_bytes};
  ForkMutex mutex_;
  std::size_t made_ = 0;
  std::vector<boost::context::stack_context> idle_;
};

}  // namespace jitsmith
