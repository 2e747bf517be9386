#include <jitsmith/tools/worker_process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr std::size_t k_max_result_bytes = std::size_t{16} << 20;
constexpr std::size_t k_complaints_bytes = std::size_t{64} << 10;

void check(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

// Both ends are closed by exec. The child's copy of its end is a duplicate at 0, 1 or 2, which is not.
struct Pipe {
  Pipe() { check(::pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno, "pipe2"); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int take(int end) { return std::exchange(ends[static_cast<std::size_t>(end)], -1); }
  int take_for_polling() {
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return take(0);
  }

  std::array<int, 2> ends{-1, -1};  // to read, to write
};

class SpawnSettings {
 public:
  SpawnSettings(int input, int output, int errors) {
    check(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init");
    ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    if (const int error = ::posix_spawnattr_init(&attributes_); error != 0) {
      ::posix_spawn_file_actions_destroy(&actions_);
      check(error, "posix_spawnattr_init");
    }
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setpgroup(&attributes_, 0);  // a new one
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  pid_t spawn(const std::vector<std::string>& argv) const {
    std::vector<char*> pointers;
    pointers.reserve(argv.size() + 1);
    for (const std::string& text : argv) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    pid_t pid = -1;
    check(::posix_spawn(&pid, pointers[0], &actions_, &attributes_, pointers.data(), environ), pointers[0]);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Appends what there is, and drops all but the last `keep` bytes. False at the end, or when there is nothing
// to read from.
bool take_in(int descriptor, std::string& text, std::size_t keep) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > keep) text.erase(0, text.size() - keep);
  }
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& argv) {
  Pipe input, output, errors;
  pid_ = SpawnSettings(input.ends[0], output.ends[1], errors.ends[1]).spawn(argv);
  input_ = input.take(1);
  output_ = output.take_for_polling();
  errors_ = errors.take_for_polling();
}

WorkerProcess::~WorkerProcess() {
  if (pid_ >= 0) end();
  for (const int descriptor : {input_, output_, errors_})
    if (descriptor >= 0) ::close(descriptor);
}

void WorkerProcess::send(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t count = ::write(input_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool WorkerProcess::read() {
  // The output first: what was complained about before a result is then there too.
  const bool open = take_in(output_, received_, k_max_result_bytes + 1);
  if (errors_ >= 0 && !take_in(errors_, complaints_, k_complaints_bytes)) ::close(std::exchange(errors_, -1));
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

WorkerProcess::End WorkerProcess::end() {
  // How a process ends is settled before its descriptors close: one whose output has ended is not killed by
  // this, but the compiler that it may have left behind is.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  rusage usage{};
  pid_t waited = 0;
  do waited = ::wait4(pid_, &status, 0, &usage);
  while (waited < 0 && errno == EINTR);
  pid_ = -1;
  if (errors_ >= 0) take_in(errors_, complaints_, k_complaints_bytes);
  std::string ending = "unknown";
  if (waited >= 0 && WIFSIGNALED(status)) {
    const char* const name = ::sigdescr_np(WTERMSIG(status));
    ending = fmt::format("signal {} ({})", WTERMSIG(status), name != nullptr ? name : "without a name");
  } else if (waited >= 0) {
    ending = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return {std::move(ending), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace jitsmith
