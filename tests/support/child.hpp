// Child processes of a test: started by fork, ended by the work's result, killed, stopped, waited for.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

namespace jitsmith::test {

// The child ends with status 0 if `work` returns true.
inline pid_t start(const std::function<bool()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  int status = 2;
  try {
    status = work() ? 0 : 1;
  } catch (...) {
  }
  _exit(status);
}

// As waitpid tells it; 0 for a child that succeeded.
inline int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// As status_of, but a child that takes longer is killed, and the result says so.
inline int status_within(pid_t child, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

// Several processes can only be let go at once through something that they share.
class Gate {
 public:
  Gate() { REQUIRE(pipe(ends_) == 0); }
  ~Gate() {
    close(ends_[0]);
    open();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // In the children: returns once the parent has opened it.
  void wait() {
    open();  // our own copy of the writing end
    char byte;
    while (read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }
  void open() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace jitsmith::test
