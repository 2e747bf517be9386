// A mutex that a forked child finds unlocked, whatever the parent's threads held at the time of the fork, and
// a value guarded by one.
//
// Only the forking thread lives on in a child, so a mutex that another thread held would stay locked there
// for ever, and what that thread was changing would stay half-changed. The child is known by its process id:
// a child that has the id of its parent (the first process of a new process id namespace, made by the first
// of another) is not told apart. No handler of pthread_atfork, which would outlive an unloaded library.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace jitsmith {

// Whether this process is another one than at the last call (or at construction): true once after a fork.
class ForkCheck {
 public:
  bool is_new_process() {
    const pid_t now = ::getpid();
    return pid_.exchange(now, std::memory_order_relaxed) != now;
  }

 private:
  std::atomic<pid_t> pid_{::getpid()};
};

class ForkMutex {
 public:
  ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() {
    renew_in_child();
    mutex_.lock();
    is_held_.store(true, std::memory_order_relaxed);
  }
  bool try_lock() {
    renew_in_child();
    if (!mutex_.try_lock()) return false;
    is_held_.store(true, std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    is_held_.store(false, std::memory_order_relaxed);
    mutex_.unlock();
  }

  // Whether a thread held the mutex when this process was forked off, so that what it guards may be
  // half-changed. True once, to be asked by who holds it.
  bool take_held_at_fork() { return std::exchange(was_held_at_fork_, false); }

 private:
  // The first thread of a child makes the mutex anew; others wait for the moment that it takes. While it is
  // at it the owner is minus its process id: a child of its own that is forked at this moment begins again.
  void renew_in_child() {
    const pid_t now = ::getpid();
    pid_t seen = owner_.load(std::memory_order_acquire);
    while (seen != now) {
      if (seen != -now && owner_.compare_exchange_weak(seen, -now, std::memory_order_acquire)) {
        ::new (static_cast<void*>(std::addressof(mutex_))) std::mutex;
        // Kept until it is taken, also by a grandchild.
        was_held_at_fork_ = is_held_.exchange(false, std::memory_order_relaxed) || was_held_at_fork_;
        owner_.store(now, std::memory_order_release);
        return;
      }
      seen = owner_.load(std::memory_order_acquire);
    }
  }

  std::mutex mutex_;
  std::atomic<bool> is_held_{false};
  bool was_held_at_fork_ = false;
  std::atomic<pid_t> owner_{::getpid()};
};

// A value that threads change one at a time. A child that is forked during a change begins with a new value.
template <class Value>
class ForkGuarded {
 public:
  // The result of `use(Value&)`, called under the mutex: it must not come back here, nor wait for anything.
  template <class Use>
  auto with(Use&& use) {
    const std::scoped_lock lock(mutex_);
    // What is half-changed cannot even be destroyed: it is left as it is.
    if (mutex_.take_held_at_fork()) ::new (static_cast<void*>(std::addressof(value_))) Value();
    return std::forward<Use>(use)(value_);
  }

 private:
  ForkMutex mutex_;
  Value value_{};
};

}  // namespace jitsmith
