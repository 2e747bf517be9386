#include <jitsmith/runtime/single_flight.hpp>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

namespace jitsmith {
namespace {

using Flight = SingleFlight<std::string, int>;

// Runs `action` on `count` threads that start together.
template <class Action>
void on_threads(int count, Action action) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      action(i);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_SUITE_BEGIN("SingleFlight [tsan]");

TEST_CASE("A value is built once and kept") {
  Flight flight;
  int built = 0;
  CHECK_FALSE(flight.find("a"));
  CHECK(flight.get("a", [&] { return ++built; }) == 1);
  CHECK(flight.get("a", [&] { return ++built; }) == 1);
  CHECK(flight.find("a") == 1);
  CHECK(flight.get("b", [&] { return ++built; }) == 2);
}

TEST_CASE("Threads that come together share one build") {
  Flight flight;
  std::atomic<int> built = 0, right = 0;
  on_threads(16, [&](int) {
    const int value = flight.get("a", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return ++built;
    });
    if (value == 1) ++right;
  });
  CHECK(built == 1);
  CHECK(right == 16);
}

TEST_CASE("Different keys are built side by side") {
  Flight flight;
  std::latch both(2);
  // Ends only if each build runs while the other does.
  on_threads(2, [&](int i) {
    flight.get(i == 0 ? "a" : "b", [&] {
      both.arrive_and_wait();
      return i;
    });
  });
  CHECK(flight.find("a") == 0);
  CHECK(flight.find("b") == 1);
}

TEST_CASE("What is still being built is not found") {
  Flight flight;
  std::latch building(1), looked(1);
  std::thread builder([&] {
    flight.get("a", [&] {
      building.count_down();
      looked.wait();
      return 1;
    });
  });
  building.wait();
  CHECK_FALSE(flight.find("a"));
  looked.count_down();
  builder.join();
  CHECK(flight.find("a") == 1);
}

TEST_CASE("F28: A compile error is kept and raised again in full") {
  Flight flight;
  int built = 0;
  const auto fail = [&]() -> int {
    ++built;
    throw CompileError("no good", "line 1\nline 2");
  };
  for (int i = 0; i < 3; ++i) {
    try {
      flight.get("a", fail);
      FAIL_CHECK("nothing was thrown");
    } catch (const CompileError& error) {
      CHECK(std::string(error.what()) == "no good");
      CHECK(error.log == "line 1\nline 2");
    }
  }
  CHECK(built == 1);
  CHECK_THROWS_AS(flight.find("a"), CompileError);
}

TEST_CASE("F28: A failure that may pass is forgotten") {
  Flight flight;
  CHECK_THROWS_AS(flight.get("a", []() -> int { throw TransientCompileError("no memory", ""); }),
                  TransientCompileError);
  CHECK_FALSE(flight.find("a"));
  CHECK_THROWS_AS(flight.get("a", []() -> int { throw DriverError("busy", 2); }), DriverError);
  CHECK_FALSE(flight.find("a"));
  CHECK_THROWS_AS(flight.get("a", []() -> int { throw NotCached("not now"); }), NotCached);
  CHECK_THROWS_AS(flight.get("a", []() -> int { throw 7; }), int);
  CHECK(flight.get("a", [] { return 5; }) == 5);
}

TEST_CASE("F28: Five who wait get the builder's compile error, in full and without a build of their own") {
  Flight flight;
  std::atomic<int> built = 0, right = 0;
  on_threads(6, [&](int) {
    try {
      flight.get("a", [&]() -> int {
        ++built;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others come to wait
        throw CompileError("no good", "line 1\nline 2");
      });
    } catch (const CompileError& error) {
      if (std::string(error.what()) == "no good" && error.log == "line 1\nline 2") ++right;
    }
  });
  CHECK(right == 6);
  CHECK(built == 1);
}

TEST_CASE("F28: A failure wakes all who wait, and the next caller builds afresh") {
  Flight flight;
  std::atomic<int> built = 0, failed = 0;
  on_threads(8, [&](int) {
    try {
      flight.get("a", [&]() -> int {
        ++built;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        throw DriverError("busy", 2);
      });
    } catch (const DriverError&) {
      ++failed;
    }
  });
  CHECK(failed == 8);
  CHECK(built >= 1);
  CHECK(flight.get("a", [] { return 5; }) == 5);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("SingleFlight in a forked child");

TEST_CASE("F27: A child does not wait for a build of its parent, keeps what was ready, and may build") {
  Flight flight;
  flight.get("ready", [] { return 1; });
  std::latch building(1), forked(1);
  std::thread builder([&] {
    flight.get("a", [&] {
      building.count_down();
      forked.wait();
      return 2;
    });
  });
  building.wait();
  const pid_t child = fork();
  if (child == 0) {
    ::alarm(20);  // the fault to see is a wait without end
    int wrong = 0;
    if (flight.find("ready") != 1) wrong |= 1;
    if (flight.find("a")) wrong |= 2;
    if (flight.get("a", [] { return 3; }) != 3) wrong |= 4;
    if (flight.find("a") != 3) wrong |= 8;
    _exit(wrong);
  }
  forked.count_down();
  builder.join();
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(flight.find("a") == 2);
}

TEST_CASE("F27: A child finds the flight usable whatever other threads did with it at the fork") {
  Flight flight;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) try {
          flight.get(std::to_string(i) + " " + std::to_string(n % 500), [&]() -> int {
            if (n % 2 == 0) throw DriverError("busy", 2);  // adds and removes
            return n;
          });
        } catch (const DriverError&) {
        }
    });
  int failed = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      ::alarm(20);
      const bool built = flight.get("mine", [] { return 7; }) == 7 && flight.find("mine") == 7;
      _exit(built ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_SUITE_END();

}  // namespace jitsmith
