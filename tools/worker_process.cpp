#include <jitsmith/tools/worker_process.hpp>

#include <fcntl.h>
#include <signal.h>

#include <span>
#include <utility>

namespace jitsmith {
namespace {

constexpr std::size_t k_max_result_bytes = std::size_t{16} << 20;
constexpr std::size_t k_complaints_bytes = std::size_t{64} << 10;

Descriptor for_polling(Descriptor end) {
  ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
  return end;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& argv) {
  Pipe input, output, errors;
  pid_ = start_child({.argv = argv,
                      .input = input.read_end.get(),
                      .output = output.write_end.get(),
                      .errors = errors.write_end.get(),
                      .leads_group = true});
  input_ = std::move(input.write_end);
  output_ = for_polling(std::move(output.read_end));
  errors_ = for_polling(std::move(errors.read_end));
}

WorkerProcess::~WorkerProcess() {
  if (pid_ >= 0) end();
}

void WorkerProcess::send(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  real_file_system().write_full(input_.get(), std::as_bytes(std::span(bytes)));
}

bool WorkerProcess::read() {
  // The output first: what was complained about before a result is then there too.
  const bool open = take_in(output_.get(), received_, k_max_result_bytes + 1);
  if (errors_.is_open() && !take_in(errors_.get(), complaints_, k_complaints_bytes)) errors_.close();
  return open && received_.size() <= k_max_result_bytes;
}

std::optional<std::string> WorkerProcess::next_line() {
  const std::size_t newline = received_.find('\n');
  if (newline == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, newline);
  received_.erase(0, newline + 1);
  return line;
}

std::string WorkerProcess::take_complaints() {
  return std::exchange(complaints_, {});
}

ChildEnd WorkerProcess::end() {
  // How a process ends is settled before its descriptors close: one whose output has ended is not killed by
  // this, but the compiler that it may have left behind is.
  ::kill(-pid_, SIGKILL);
  ChildEnd end = wait_for_child(std::exchange(pid_, -1));
  if (errors_.is_open()) take_in(errors_.get(), complaints_, k_complaints_bytes);
  return end;
}

}  // namespace jitsmith
