#include <jitsmith/jit/child_process.hpp>

#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

namespace jitsmith {
namespace {

constexpr std::size_t k_most_output = std::size_t{4} << 20;  // the last of it
constexpr int k_look_ms = 50;

bool has_ended(pid_t child) {
  siginfo_t info{};
  const int result = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return result < 0 || info.si_pid == child;
}

// All that the child says. What it leaves running may keep the pipe open for ever, and is not waited for.
std::string output_of(pid_t child, int pipe) {
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  std::string output;
  while (take_in(pipe, output, k_most_output)) {
    pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, k_look_ms) == 0 && has_ended(child)) {
      take_in(pipe, output, k_most_output);
      break;
    }
  }
  return output;
}

}  // namespace

ChildResult run_child(const ChildProcess& child) {
  Pipe pipe;
  const pid_t pid = start_child({.argv = child.argv,
                                 .environment = &child.environment,
                                 .directory = child.directory.c_str(),
                                 .output = pipe.write_end.get(),
                                 .errors = pipe.write_end.get()});
  pipe.write_end.close();
  std::string output = output_of(pid, pipe.read_end.get());
  return {wait_for_child(pid), std::move(output)};
}

}  // namespace jitsmith
