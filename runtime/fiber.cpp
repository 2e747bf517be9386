#include <jitsmith/runtime/fiber.hpp>

#include <utility>

#include <jitsmith/runtime/sanitizer_fiber.hpp>
#include <jitsmith/runtime/stack_pool.hpp>

namespace jitsmith {
namespace {

// Boost's form of a pool.
struct StackAllocator {
  StackPool* pool;
  boost::context::stack_context allocate() { return pool->take(); }
  void deallocate(boost::context::stack_context& stack) { pool->give_back(stack); }
};

}  // namespace

Fiber::Fiber(StackPool& pool, Body body, void* argument)
    : body_(body), argument_(argument), tsan_self_(sanitizer::create_thread()) {
  StackAllocator allocator{&pool};
  const boost::context::stack_context stack = allocator.allocate();
  stack_bytes_ = stack.size;
  stack_bottom_ = static_cast<char*>(stack.sp) - stack.size;
  sanitizer::clear_marks(stack_bottom_, stack_bytes_);
  self_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                allocator,
                                [this](boost::context::fiber&& resumer) { return run(std::move(resumer)); });
}

Fiber::~Fiber() {
  ending_ = true;
  resume();
  sanitizer::destroy_thread(tsan_self_);
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  tsan_resumer_ = sanitizer::current_thread();
  sanitizer::start_switch(&fake_stack, stack_bottom_, stack_bytes_);
  sanitizer::switch_thread(tsan_self_);
  self_ = std::move(self_).resume();
  sanitizer::finish_switch(fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
  sanitizer::start_switch(&fake_stack_, resumer_bottom_, resumer_bytes_);
  sanitizer::switch_thread(tsan_resumer_);
  resumer_ = std::move(resumer_).resume();
  sanitizer::finish_switch(fake_stack_, &resumer_bottom_, &resumer_bytes_);
}

boost::context::fiber Fiber::run(boost::context::fiber&& resumer) {
  sanitizer::finish_switch(nullptr, &resumer_bottom_, &resumer_bytes_);
  resumer_ = std::move(resumer);
  while (!ending_) {
    body_(argument_);
    suspend();
  }
  sanitizer::start_switch(nullptr, resumer_bottom_, resumer_bytes_);
  sanitizer::switch_thread(tsan_resumer_);
  return std::move(resumer_);
}

}  // namespace jitsmith
