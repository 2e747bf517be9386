// Runs part of a test where it may mount what it likes: in a child with a mount namespace of its own, as an
// ordinary user through a user namespace, or else as root. What it mounts is gone when it ends.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>

namespace jitsmith::test {

struct NamespaceRun {
  std::string skipped;  // why it could not be tried, or empty
  std::string problem;  // what went wrong, or empty
};

namespace detail {

inline bool write_text(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return ::close(file) == 0 && is_whole;
}

// Empty, or why there is no namespace.
inline std::string enter_mount_namespace() {
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
    write_text("/proc/self/setgroups", "deny");  // older kernels have no such file
    if (!write_text("/proc/self/uid_map", "0 " + uid + " 1") ||
        !write_text("/proc/self/gid_map", "0 " + gid + " 1"))
      return std::string("a user namespace cannot be mapped: ") + std::strerror(errno);
  } else if (::unshare(CLONE_NEWNS) != 0) {
    return std::string("neither a user namespace nor root: ") + std::strerror(errno);
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::string("mounts cannot be made private: ") + std::strerror(errno);
  return {};
}

}  // namespace detail

// Calls `prepare()` and then `body()` there. Both return a text: why it cannot be done, and what went wrong.
template <class Prepare, class Body>
NamespaceRun in_mount_namespace(Prepare prepare, Body body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {"no pipe", {}};
  const pid_t child = ::fork();
  if (child == 0) {
    std::string answer;
    try {
      answer = detail::enter_mount_namespace();
      if (answer.empty()) answer = prepare();
      answer = answer.empty() ? "P" + std::string(body()) : "S" + answer;
    } catch (const std::exception& error) {
      answer = std::string("Pexception: ") + error.what();
    }
    const ssize_t written = ::write(ends[1], answer.data(), answer.size());
    ::_exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string answer;
  char piece[512];
  for (ssize_t got; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    answer.append(piece, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0 || answer.empty())
    return {{}, "the child ended with status " + std::to_string(status)};
  return answer[0] == 'S' ? NamespaceRun{answer.substr(1), {}} : NamespaceRun{{}, answer.substr(1)};
}

}  // namespace jitsmith::test
