// WorkerProcess: one child with a pipe to each of its standard streams, read without waiting.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <jitsmith/jit/spawn.hpp>

namespace jitsmith {

class WorkerProcess {
 public:
  // Starts `argv`, whose first is a path: with the environment and working directory of this process, default
  // signal handling, none of the other descriptors, and a process group of its own. Throws std::system_error.
  explicit WorkerProcess(const std::vector<std::string>& argv);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // To be polled, for read(). Negative when there is nothing to wait for.
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }

  // To its standard input. One that has died shows that at its output.
  void send(std::string_view line);

  // Takes in what its output and its standard error have by now. False when its output has ended, or it has
  // sent a line longer than any result: then end it.
  bool read();
  std::optional<std::string> next_line();  // of what was taken in
  std::string take_complaints();           // likewise: the last 64 KiB of its standard error

  // Kills the process and its group, in case they live, and waits for it. Once, and last but
  // take_complaints().
  ChildEnd end();

 private:
  pid_t pid_ = -1;
  Descriptor input_, output_, errors_;
  std::string received_, complaints_;
};

}  // namespace jitsmith
