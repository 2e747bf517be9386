// A TCP connection within a deadline that covers everything: the look-up of the name, and all addresses.
#pragma once

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/redis_failure.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace jitsmith {

using Deadline = std::chrono::steady_clock::time_point;

// Waits until the descriptor is ready for `events` (of poll), or has failed. False: the deadline has passed.
bool wait_until_ready(int descriptor, short events, Deadline deadline);

struct TcpConnected {
  Descriptor socket;  // non-blocking, not inherited by programs that are started
  RedisFailure failure;
};

// Thread safe. Throws std::bad_alloc.
TcpConnected connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline);

}  // namespace jitsmith
