#include <jitsmith/jit/spawn.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace jitsmith {
namespace {

void check(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

struct FileActions {
  FileActions() { check(::posix_spawn_file_actions_init(&value), "posix_spawn_file_actions_init"); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&value); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  posix_spawn_file_actions_t value;
};

struct Attributes {
  Attributes() { check(::posix_spawnattr_init(&value), "posix_spawnattr_init"); }
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  posix_spawnattr_t value;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends;
  check(::pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno, "pipe2");
  read_end = {real_file_system(), ends[0]};
  write_end = {real_file_system(), ends[1]};
}

pid_t start_child(const ChildStart& start) {
  FileActions actions;
  if (start.input < 0)
    ::posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  else
    ::posix_spawn_file_actions_adddup2(&actions.value, start.input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions.value, start.output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions.value, start.errors, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions.value, STDERR_FILENO + 1);
  if (start.directory != nullptr) ::posix_spawn_file_actions_addchdir_np(&actions.value, start.directory);

  // The signal mask and ignored signals of the host program are its own affair.
  Attributes attributes;
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes.value, &signals);
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(&attributes.value, &signals);
  ::posix_spawnattr_setpgroup(&attributes.value, 0);
  ::posix_spawnattr_setflags(&attributes.value,
                             static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                (start.leads_group ? POSIX_SPAWN_SETPGROUP : 0)));

  const std::vector<char*> argv = pointers(start.argv);
  const std::vector<char*> environment =
      start.environment != nullptr ? pointers(*start.environment) : std::vector<char*>();
  pid_t child = -1;
  check(::posix_spawn(&child, argv[0], &actions.value, &attributes.value, argv.data(),
                      start.environment != nullptr ? environment.data() : environ),
        argv[0]);
  return child;
}

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

ChildEnd wait_for_child(pid_t child) {
  int status = 0;
  rusage usage{};
  pid_t waited = 0;
  do waited = ::wait4(child, &status, 0, &usage);
  while (waited < 0 && errno == EINTR);
  ChildEnd end{.peak_memory_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  if (waited < 0) {
    // A program that ignores SIGCHLD never learns how its children ended.
    end.succeeded = true;
    end.ending = "unknown";
  } else if (WIFSIGNALED(status)) {
    end.killed = true;
    const char* const name = ::sigdescr_np(WTERMSIG(status));
    end.ending = fmt::format("signal {} ({})", WTERMSIG(status), name != nullptr ? name : "without a name");
  } else {
    end.succeeded = WEXITSTATUS(status) == 0;
    end.ending = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace jitsmith
