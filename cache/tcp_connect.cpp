#include <jitsmith/cache/tcp_connect.hpp>

#include <jitsmith/cache/host_addresses.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace jitsmith {
namespace {

using std::chrono::steady_clock;

TcpConnected connect_to(const HostAddress& address, Deadline deadline) {
  Descriptor socket(real_file_system(),
                    ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto fail = [&](RedisFault fault, int error) { return TcpConnected{{}, {fault, error}}; };
  if (!socket.is_open()) return fail(RedisFault::not_connected, errno);

  const auto* const target = reinterpret_cast<const sockaddr*>(&address.bytes);
  // EINTR leaves a connection that is being made, as EINPROGRESS does.
  if (::connect(socket.get(), target, address.length) != 0 && errno != EINPROGRESS && errno != EINTR)
    return fail(RedisFault::not_connected, errno);
  if (!wait_until_ready(socket.get(), POLLOUT, deadline)) return fail(RedisFault::slow_connect, 0);
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return fail(RedisFault::not_connected, error);

  // A command is one small packet and waits for its reply. Without the option it is only slower.
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return {std::move(socket), {}};
}

}  // namespace

bool wait_until_ready(int descriptor, short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd waited{descriptor, events, 0};
    const auto timeout = std::min<decltype(left)>(left, std::numeric_limits<int>::max());
    const int ready = ::poll(&waited, 1, static_cast<int>(timeout));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR && errno != EAGAIN) return true;  // the next call on it tells the error
  }
}

TcpConnected connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline) {
  const FoundAddresses found = find_addresses(host, port, deadline);
  if (found.failure) return {{}, found.failure};
  TcpConnected result{{}, {RedisFault::slow_connect, 0}};
  auto left_to_try = static_cast<int>(found.addresses.size());
  for (const HostAddress& address : found.addresses) {
    // An address that swallows packets must not take the time of those behind it.
    const auto now = steady_clock::now();
    result = connect_to(address, now + (deadline - now) / left_to_try--);
    if (!result.failure) break;
  }
  return result;
}

}  // namespace jitsmith
