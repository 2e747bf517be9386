// A Redis server of a test's own, on a free port of the loopback interface, in a directory of its own. It
// dies with the object, and with the test program.
#pragma once

#include "stub_server.hpp"
#include "temp_dir.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace jitsmith::test {

inline bool have_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

class RedisServer {
 public:
  // `arguments` as on the command line: {"--requirepass", "secret"}. `port_option`: --tls-port for a server
  // that speaks TLS only.
  explicit RedisServer(std::vector<std::string> arguments = {}, std::string port_option = "--port")
      : arguments_(std::move(arguments)), port_option_(std::move(port_option)) {
    // Somebody else may take the port between its choice and its use.
    for (int attempt = 0; attempt < 5; ++attempt) {
      port_ = free_port();
      if (start()) return;
    }
    throw std::runtime_error("redis-server does not start");
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { kill(); }

  std::uint16_t port() const { return port_; }
  const TempDir& directory() const { return directory_; }

  // Without anything that it held before: nothing is saved. False when it does not come up.
  bool start() {
    std::vector<std::string> words = {
        "redis-server",   port_option_, std::to_string(port_), "--bind", "127.0.0.1",
        "--save",         "",           "--appendonly",        "no",     "--dir",
        directory_.path()};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::string log = directory_ / "log";
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < give_up) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) break;
      if (connects()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill();
    return false;
  }

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  void stall() { ::kill(process_, SIGSTOP); }
  void go_on() { ::kill(process_, SIGCONT); }

  // The reply to a command, given as one line of words, on a connection of its own. Not for TLS.
  std::string ask(const std::string& commands) {
    const int socket = connect();
    const std::string line = commands + "\r\nQUIT\r\n";
    std::string reply;
    if (::send(socket, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size())) {
      char bytes[4096];
      for (ssize_t got = 0; (got = ::recv(socket, bytes, sizeof bytes, 0)) > 0;)
        reply.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(socket);
    return reply;
  }

 private:
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    ::close(socket);
    return -1;
  }
  bool connects() const {
    const int socket = connect();
    if (socket >= 0) ::close(socket);
    return socket >= 0;
  }

  TempDir directory_;
  std::vector<std::string> arguments_;
  std::string port_option_;
  std::uint16_t port_ = 0;
  pid_t process_ = -1;
};

}  // namespace jitsmith::test
