// WorkerPool: runs jobs in worker processes, each of which has one job at a time. A worker that dies fails
// the job that it had, and no other: it is replaced, and the run goes on.
//
// A worker is any program that writes a line when it is ready, and then, for each line of its standard input
// (a job), a line to its standard output (the result), until its input ends. What it writes to standard error
// belongs to the job that it has. Workers are started as worker_process.hpp says; a Ctrl-C does not reach
// them.
//
// For one thread. SIGPIPE must be ignored, and SIGCHLD must not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <jitsmith/tools/worker_process.hpp>

namespace jitsmith {

// How a job ended: with a result, or with the end of its worker.
struct JobEnd {
  std::optional<std::string> result;  // without its newline
  std::string ending;                 // when there is none: "signal 11 (Segmentation fault)", "exit status 3"
  std::string complaints;             // standard error: the last 64 KiB
};

class WorkerPool {
 public:
  using Done = std::function<void(std::size_t job, JobEnd end)>;

  // `argv`: the program by its path, and its arguments. At most `workers` run at once. Starts nothing yet.
  WorkerPool(std::vector<std::string> argv, std::size_t workers)
      : argv_(std::move(argv)), max_workers_(workers) {}

  // Calls `done` for each job as it ends, in any order. Goes on with fewer workers when no more can be
  // started; with none left it returns why, else "". It also returns when the descriptor `stop` becomes
  // readable. Of jobs that had not ended by then nothing is told; all workers and what they started have been
  // killed. A job is one line, without its newline.
  std::string run(const std::vector<std::string>& jobs, int stop, const Done& done);

  // Of the worker that needed most, or the program that one ran.
  std::uint64_t peak_memory_bytes() const { return peak_memory_bytes_; }

 private:
  struct Worker {
    std::unique_ptr<WorkerProcess> process;
    bool ready = false;
    std::optional<std::size_t> job;
  };

  void start_workers(std::size_t wanted);
  bool wait(int stop) const;  // false: stop
  void receive(Worker& worker, const Done& done);
  JobEnd end(Worker& worker);  // kills it; it has no process then

  const std::vector<std::string> argv_;
  std::size_t max_workers_;
  std::vector<Worker> workers_;
  std::string why_no_more_;
  std::uint64_t peak_memory_bytes_ = 0;
};

}  // namespace jitsmith
