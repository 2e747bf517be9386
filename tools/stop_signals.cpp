#include <jitsmith/tools/stop_signals.hpp>

#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>

namespace jitsmith {

StopSignals::StopSignals() {
  ::sigemptyset(&blocked_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      ::sigaddset(&blocked_, signal);
  }
  descriptor_ = ::signalfd(-1, &blocked_, SFD_CLOEXEC | SFD_NONBLOCK);
  ::pthread_sigmask(SIG_BLOCK, descriptor_ < 0 ? nullptr : &blocked_, &before_);
}

StopSignals::~StopSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool StopSignals::received() {
  signalfd_siginfo info{};
  if (!signal_ && descriptor_ >= 0 && ::read(descriptor_, &info, sizeof(info)) == sizeof(info))
    signal_ = static_cast<int>(info.ssi_signo);
  return signal_.has_value();
}

void StopSignals::die_if_received() {
  if (!received()) return;
  std::fflush(stdout);
  ::signal(*signal_, SIG_DFL);
  ::raise(*signal_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace jitsmith
