#include "samples.hpp"

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/cache/stats.hpp>
#include <jitsmith/cache/write_gate.hpp>

#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

// A child that hangs is killed by its alarm, and then has no result of its own.
template <class Body>
int in_child_that_ends(Body body) {
  return in_child([&] {
    ::alarm(20);
    return body();
  });
}

// A thread of its own that is in the middle of `hold(wait)` from construction to destruction.
template <class Hold>
class Meanwhile {
 public:
  explicit Meanwhile(Hold hold)
      : thread_([this, hold] {
          hold([this] {
            is_inside_.count_down();
            may_leave_.wait();
          });
        }) {
    is_inside_.wait();
  }
  ~Meanwhile() {
    may_leave_.count_down();
    thread_.join();
  }

 private:
  std::latch is_inside_{1}, may_leave_{1};
  std::thread thread_;
};

}  // namespace

TEST_SUITE_BEGIN("ForkMutex");

TEST_CASE("Excludes threads [tsan]") {
  ForkMutex mutex;
  int count = 0;  // not atomic
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        if (round % 2 == 0) {
          const std::scoped_lock lock(mutex);
          ++count;
        } else {
          std::unique_lock lock(mutex, std::try_to_lock);
          if (!lock.owns_lock()) lock.lock();
          ++count;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(count == 8000);
}

TEST_CASE("A child that is forked while another thread holds it can lock it [tsan]") {
  ForkMutex mutex;
  const Meanwhile holder([&](auto wait) {
    const std::scoped_lock lock(mutex);
    wait();
  });
  CHECK_FALSE(mutex.try_lock());
  CHECK(in_child_that_ends([&] {
          if (!mutex.try_lock()) return 1;
          if (mutex.try_lock()) return 2;
          mutex.unlock();
          // And so can a child of its own, which it forks while it holds the mutex itself.
          mutex.lock();
          return in_child([&] {
            mutex.lock();
            const bool was_held = mutex.take_held_at_fork();
            mutex.unlock();
            return was_held ? 0 : 3;
          });
        }) == 0);
  CHECK_FALSE(mutex.try_lock());  // nothing has changed for the parent
}

TEST_CASE("Only a mutex that was held at the fork says so, and once") {
  ForkMutex mutex;
  mutex.lock();
  CHECK_FALSE(mutex.take_held_at_fork());
  mutex.unlock();
  CHECK(in_child_that_ends([&] {
          mutex.lock();
          return mutex.take_held_at_fork() ? 1 : 0;
        }) == 0);
  const Meanwhile holder([&](auto wait) {
    const std::scoped_lock lock(mutex);
    wait();
  });
  CHECK(in_child_that_ends([&] {
          mutex.lock();
          return mutex.take_held_at_fork() && !mutex.take_held_at_fork() ? 0 : 1;
        }) == 0);
}

TEST_CASE("Many threads of a child renew it together [nosan]") {
  ForkMutex mutex;
  const Meanwhile holder([&](auto wait) {
    const std::scoped_lock lock(mutex);
    wait();
  });
  CHECK(in_child_that_ends([&] {
          int count = 0;
          std::latch start(8);
          std::vector<std::thread> threads;
          for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
              start.arrive_and_wait();
              for (int round = 0; round < 500; ++round) {
                const std::scoped_lock lock(mutex);
                ++count;
              }
            });
          }
          for (auto& thread : threads) thread.join();
          return count == 4000 ? 0 : 1;
        }) == 0);
}

TEST_CASE("What was whole at the fork is kept by the child, what was half-changed begins anew [tsan]") {
  ForkGuarded<std::map<int, int>> guarded;
  guarded.with([](auto& map) { map[1] = 1; });
  const auto size_in_child = [&] {
    return in_child_that_ends([&] {
      guarded.with([](auto& map) { map[7] = 7; });
      return static_cast<int>(guarded.with([](const auto& map) { return map.size(); }));
    });
  };
  CHECK(size_in_child() == 2);
  {
    const Meanwhile changer([&](auto wait) {
      guarded.with([&](auto& map) {
        map[2] = 2;
        wait();
      });
    });
    CHECK(size_in_child() == 1);
  }
  CHECK(guarded.with([](const auto& map) { return map.size(); }) == 2);
}

TEST_CASE("Counters and gate go on in children that are forked while threads use them [tsan]") {
  CacheCounters counters;
  WriteGate gate;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        counters.add(&CacheStats::hits);
        counters.add(&CacheStats::write_failed, static_cast<int>(counters.snapshot().hits % 50));
        gate.note_failure(ENOSPC, std::chrono::steady_clock::now());
      }
    });
  }
  for (int round = 0; round < 30; ++round) {
    CHECK(in_child_that_ends([&] {
            counters.add(&CacheStats::written);
            counters.add(&CacheStats::write_failed, EIO);
            gate.note_failure(EROFS, std::chrono::steady_clock::now());
            const bool is_closed = gate.closed(std::chrono::steady_clock::now())->for_good;
            return is_closed && counters.snapshot().written == 1 &&
                           counters.snapshot().write_failed.contains(EIO)
                       ? 0
                       : 1;
          }) == 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(counters.snapshot().written == 0);
}

TEST_SUITE_END();
