// WorkerProcess: one child with a pipe to each of its standard streams, read without waiting.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace jitsmith {

class WorkerProcess {
 public:
  struct End {
    std::string ending;               // "signal 11 (Segmentation fault)", "exit status 3"
    std::uint64_t peak_memory_bytes;  // of the process, or of a child that it waited for
  };

  // Starts `argv`, whose first is a path: with the environment and working directory of this process, default
  // signal handling, none of the other descriptors, and a process group of its own. Throws std::system_error.
  explicit WorkerProcess(const std::vector<std::string>& argv);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // To be polled, for read(). -1 when there is nothing to wait for.
  int output() const { return output_; }
  int errors() const { return errors_; }

  // To its standard input. One that has died shows that at its output.
  void send(std::string_view line);

  // Takes in what its output and its standard error have by now. False when its output has ended, or it has
  // sent a line longer than any result: then end it.
  bool read();
  std::optional<std::string> next_line();  // of what was taken in
  std::string take_complaints();           // likewise: the last 64 KiB of its standard error

  // Kills the process and its group, in case they live, and waits for it. Once, and last but
  // take_complaints().
  End end();

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  std::string received_, complaints_;
};

}  // namespace jitsmith
