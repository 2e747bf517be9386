// The addresses of a host, looked up within a deadline.
//
// getaddrinfo waits for name servers as long as it likes, many seconds when they are away, and cannot be
// stopped. It is therefore asked in a thread of its own, which is left behind when it is not back in time.
// (getaddrinfo_a does the same, but its threads and locks do not survive a fork: a child that was forked
// shortly after a look-up would wait in vain for ever.) For an address in digits there is no thread.
#pragma once

#include <jitsmith/cache/redis_failure.hpp>

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace jitsmith {

struct HostAddress {
  int family = AF_UNSPEC;
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

struct FoundAddresses {
  std::vector<HostAddress> addresses;  // at least one, unless it failed
  RedisFailure failure;
};

// Thread safe. Throws std::bad_alloc. The library must stay loaded while a look-up that was left behind ends.
FoundAddresses find_addresses(const std::string& host, std::uint16_t port,
                              std::chrono::steady_clock::time_point deadline);

}  // namespace jitsmith
