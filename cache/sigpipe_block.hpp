// Keeps writes to a closed connection from killing the program, without touching its signal dispositions.
//
// Neither hiredis nor OpenSSL writes with MSG_NOSIGNAL. While an object of this lives, SIGPIPE is blocked for
// this thread; one that came up meanwhile is taken away at the end. One that was pending before stays.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace jitsmith {

class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    const sigset_t pipe = pipe_set();
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;
  ~SigpipeBlock() {
    const int error = errno;
    // SIGPIPE of a write is sent to the writing thread alone, so it is here already and it is ours.
    const sigset_t pipe = pipe_set();
    constexpr timespec k_at_once{};
    while (!was_pending_ && ::sigtimedwait(&pipe, nullptr, &k_at_once) < 0 && errno == EINTR) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  static sigset_t pipe_set() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
  }

  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace jitsmith
