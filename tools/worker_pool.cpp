#include <jitsmith/tools/worker_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

namespace jitsmith {

std::string WorkerPool::run(const std::vector<std::string>& jobs, int stop, const Done& done) {
  why_no_more_.clear();
  std::size_t next = 0;
  while (true) {  // hand out, start what is wanted, wait, take in
    for (Worker& worker : workers_)
      if (worker.ready && !worker.job && next < jobs.size()) {
        worker.job = next++;
        worker.process->send(jobs[*worker.job]);
      }
    const auto busy = static_cast<std::size_t>(
        std::ranges::count_if(workers_, [](const Worker& worker) { return worker.job.has_value(); }));
    start_workers(busy + jobs.size() - next);
    if (busy == 0 && (next == jobs.size() || workers_.empty())) break;

    if (!wait(stop)) break;
    for (Worker& worker : workers_) receive(worker, done);
    std::erase_if(workers_, [](const Worker& worker) { return worker.process == nullptr; });
  }
  // An idle worker has nothing to lose, and one with a job was to stop.
  for (Worker& worker : workers_) end(worker);
  workers_.clear();
  return next < jobs.size() ? why_no_more_ : std::string();
}

void WorkerPool::start_workers(std::size_t wanted) {
  while (workers_.size() < std::min(wanted, max_workers_)) try {
      workers_.push_back({.process = std::make_unique<WorkerProcess>(argv_)});
    } catch (const std::system_error& error) {
      why_no_more_ = fmt::format("{}: {}", argv_[0], error.code().message());
      max_workers_ = workers_.size();
    }
}

bool WorkerPool::wait(int stop) const {
  std::vector<pollfd> polled{{.fd = stop, .events = POLLIN, .revents = 0}};
  for (const Worker& worker : workers_)
    for (const int descriptor : {worker.process->output(), worker.process->errors()})
      polled.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
  return polled[0].revents == 0;
}

void WorkerPool::receive(Worker& worker, const Done& done) {
  const bool lives = worker.process->read();
  while (const std::optional<std::string> line = worker.process->next_line()) {
    std::string complaints = worker.process->take_complaints();
    if (!worker.ready)
      worker.ready = true;  // and its complaints are of the start, which this process has made too
    else if (worker.job)
      done(*std::exchange(worker.job, std::nullopt), {*line, {}, std::move(complaints)});
  }
  if (lives) return;

  JobEnd last = end(worker);
  if (worker.job) return done(*worker.job, std::move(last));
  if (worker.ready) return;
  why_no_more_ = fmt::format("a worker ended with {} before it was ready{}{}", last.ending,
                             last.complaints.empty() ? "" : ": ", last.complaints);
  max_workers_ = static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const Worker& other) { return other.process != nullptr; }));
}

JobEnd WorkerPool::end(Worker& worker) {
  ChildEnd end = worker.process->end();
  peak_memory_bytes_ = std::max(peak_memory_bytes_, end.peak_memory_bytes);
  JobEnd last{std::nullopt, std::move(end.ending), worker.process->take_complaints()};
  worker.process.reset();
  return last;
}

}  // namespace jitsmith
