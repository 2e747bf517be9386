// Fiber: a function with a stack of its own, run in turns with the code that resumes it. Address- and
// ThreadSanitizer are told of each switch when the library is built with them.
#pragma once

#include <cstddef>

#include <boost/context/fiber.hpp>

namespace jitsmith {

class StackPool;

class Fiber {
 public:
  using Body = void (*)(void* argument);

  // `body` must not throw. Nothing runs yet. The pool must outlive the fiber.
  Fiber(StackPool& pool, Body body, void* argument);
  // The body must not be suspended: it has never run or has returned.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends or returns; after it has returned, the next call runs it anew.
  void resume();

  // Called by the body: back to the code that resumed it.
  void suspend();

 private:
  boost::context::fiber run(boost::context::fiber&& resumer);

  Body body_;
  void* argument_;
  bool ending_ = false;
  boost::context::fiber self_;     // valid while suspended
  boost::context::fiber resumer_;  // valid while running

  // What the sanitizers keep of a stack that does not run. Unused without them.
  void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  const void* resumer_bottom_ = nullptr;
  std::size_t resumer_bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* tsan_self_ = nullptr;
  void* tsan_resumer_ = nullptr;
};

}  // namespace jitsmith
