// StopSignals: while one lives, SIGINT and SIGTERM do not end the process but make a descriptor readable, so
// that it can put its things in order and then die of the signal after all: shells and build systems look at
// that. One that was ignored at the start stays ignored.
//
// Make it before any thread is started: they inherit the blocked signals.
#pragma once

#include <optional>

#include <signal.h>

namespace jitsmith {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int descriptor() const { return descriptor_; }  // -1 when the kernel gives none: then nothing is blocked
  bool received();                                // by now; remembered

  // Ends the process by the signal that was received. Returns only when there was none.
  void die_if_received();

 private:
  sigset_t blocked_, before_;
  int descriptor_ = -1;
  std::optional<int> signal_;
};

}  // namespace jitsmith
