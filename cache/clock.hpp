// The time, as the cache sees it: wall time beside the modification times of files, steady time for waiting.
// A class, so that a test can move it.
#pragma once

#include <chrono>
#include <thread>

namespace jitsmith {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::system_clock::time_point wall() const { return std::chrono::system_clock::now(); }
  virtual std::chrono::steady_clock::time_point steady() const { return std::chrono::steady_clock::now(); }
  virtual void sleep(std::chrono::nanoseconds duration) const { std::this_thread::sleep_for(duration); }
};

}  // namespace jitsmith
