// A TCP server on the loopback interface that does what a test tells it to, well or badly.
//
// The script runs in a thread for each connection; when it returns, the connection is closed.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace jitsmith::test {

// Listens, and accepts nothing: the kernel completes connections up to the backlog.
class ListeningSocket {
 public:
  explicit ListeningSocket(int backlog = 64) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, generic, length) != 0 || ::listen(socket_, backlog) != 0 ||
        ::getsockname(socket_, generic, &length) != 0)
      throw std::runtime_error("no socket to listen on");
    port_ = ntohs(address.sin_port);
  }
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  ~ListeningSocket() { ::close(socket_); }

  int get() const { return socket_; }
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

// One that nobody listens on, at least for the moment.
inline std::uint16_t free_port() {
  return ListeningSocket().port();
}

class Peer {
 public:
  Peer(int socket, const std::atomic<bool>& stop) : socket_(socket), stop_(stop) {}

  // The next command's words; none when the client has gone or the server stops.
  std::vector<std::string> command() {
    const std::string count = line();
    std::vector<std::string> words;
    for (int i = count.empty() ? 0 : std::stoi(count.substr(1)); i > 0; --i) {
      const std::string size = line();
      if (size.empty()) return {};
      words.push_back(take(std::stoul(size.substr(1))));
      line();
    }
    return words;
  }

  void say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Until the client has gone or the server stops.
  void say_nothing() {
    while (wait(POLLRDHUP, std::chrono::milliseconds(10)) == 0 && !stop_) continue;
  }

  // A byte each `interval`, for ever.
  void dribble(std::chrono::milliseconds interval) {
    while (!stop_ && (wait(POLLRDHUP, interval) == 0)) say("x");
  }

  // Ends the answer, but takes no more notice of what the client sends until the connection is cut.
  void stop_talking() { ::shutdown(socket_, SHUT_WR); }

 private:
  int wait(short events, std::chrono::milliseconds duration) {
    pollfd waited{socket_, events, 0};
    return ::poll(&waited, 1, static_cast<int>(duration.count()));
  }

  bool read_more() {
    while (wait(POLLIN, std::chrono::milliseconds(10)) == 0)
      if (stop_) return false;
    char bytes[65536];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) unread_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }

  std::string take(std::size_t size) {
    while (unread_.size() < size)
      if (!read_more()) return {};
    std::string taken = unread_.substr(0, size);
    unread_.erase(0, size);
    return taken;
  }

  std::string line() {
    std::size_t end = 0;
    while ((end = unread_.find("\r\n")) == std::string::npos)
      if (!read_more()) return {};
    std::string taken = take(end);
    take(2);
    return taken;
  }

  int socket_;
  const std::atomic<bool>& stop_;
  std::string unread_;
};

class StubServer {
 public:
  explicit StubServer(std::function<void(Peer&)> script)
      : script_(std::move(script)), thread_([this] { serve(); }) {}
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;
  ~StubServer() {
    stop_ = true;
    thread_.join();
  }

  std::uint16_t port() const { return listening_.port(); }
  int connections() const { return connections_; }

 private:
  void serve() {
    while (!stop_) {
      pollfd waited{listening_.get(), POLLIN, 0};
      if (::poll(&waited, 1, 10) != 1) continue;
      const int socket = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      ++connections_;
      conversations_.emplace_back([this, socket] {
        Peer peer(socket, stop_);
        script_(peer);
        ::close(socket);
      });
    }
    for (auto& conversation : conversations_) conversation.join();
  }

  ListeningSocket listening_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::function<void(Peer&)> script_;
  std::vector<std::thread> conversations_;
  std::thread thread_;
};

inline std::string bulk(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
}

}  // namespace jitsmith::test
