// Why an operation on a Redis server failed, and what follows from it.
//
// A failure is two numbers, never a text of the server, which may quote a command and with it a password. It
// can thus be told to anybody, and be read in a forked child whatever the parent's threads were about to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitsmith {

enum class RedisFault : std::uint8_t {
  none,
  // On the way to the server. `detail` is an errno unless it says otherwise.
  no_address,   // detail: of getaddrinfo
  no_resolver,  // no thread to look the name up
  slow_resolver,
  not_connected,
  slow_connect,
  tls_refused,      // the handshake failed
  tls_untrusted,    // detail: X509_V_ERR_...
  tls_unavailable,  // no trust store to be had, or no memory
  // In a conversation.
  io_error,
  closed,
  timed_out,
  too_slow,  // each answer came in time, but all of them together took too long
  too_large,
  bad_protocol,
  // Said by the server.
  not_ready,
  refused_command,
  auth_refused,
  auth_needed,
  no_permission,
  no_write_permission,
  bad_database,
  is_cluster,
  full,
  cannot_persist,
  is_replica,
  holds_no_text,  // the key is there, as a list or the like
};

struct RedisFailure {
  RedisFault fault = RedisFault::none;
  int detail = 0;

  explicit operator bool() const { return fault != RedisFault::none; }
  friend bool operator==(const RedisFailure&, const RedisFailure&) = default;
};

enum class Consequence {
  wait,           // try again after a pause
  pause_writes,   // for a while; it can still be read
  stop_writes,    // for good
  stop,           // for good: asking again would give the same answer
  damaged_value,  // a matter of this key only
};

Consequence consequence_of(RedisFault fault);

// A clause that follows "the Redis server ...": "does not accept the user and password (AUTH was refused)".
std::string describe(RedisFailure failure);

// What an error reply means. `text` is the line behind the minus sign.
RedisFault fault_of_error_reply(std::string_view text);

}  // namespace jitsmith
