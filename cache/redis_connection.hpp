// One connection to a Redis server: a command goes out, one reply comes back, and every wait has a deadline.
//
// A deadline is for all bytes of an operation together, so a server that sends one now and then cannot extend
// it. hiredis writes the commands and parses the replies; the socket and the waiting are ours. Replies that
// no command of the cache has (aggregates of any kind, numbers) are refused before memory is taken for them.
#pragma once

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/redis_failure.hpp>
#include <jitsmith/cache/redis_tls.hpp>
#include <jitsmith/cache/redis_url.hpp>
#include <jitsmith/cache/tcp_connect.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

struct redisContext;

namespace jitsmith {

struct RedisReply {
  enum class Kind { none, nil, status, bytes, error };
  Kind kind = Kind::none;
  std::string text;
};

struct RedisAnswer {
  RedisReply reply;      // not an error
  RedisFailure failure;  // of the connection, or what an error reply means
};

class RedisConnection {
 public:
  struct Opened {
    std::unique_ptr<RedisConnection> connection;  // logged in, the database selected
    RedisFailure failure;
  };

  // Throws std::bad_alloc, as ask().
  static Opened open(const RedisUrl& url, TlsTrust& trust, Deadline connect_deadline, Deadline deadline);

  // Not thread safe. After a failure of the connection, and after std::bad_alloc, is_usable() is false.
  RedisAnswer ask(std::span<const std::string_view> command, Deadline deadline);

  // Whether another command can be tried: nothing failed, the server has not closed it, and nothing has come
  // that was not asked for.
  bool is_usable() const;

  // In a forked child: lets go of the parent's connection without a word to the server. The memory is left,
  // for a thread of the parent may have been about to change it.
  void abandon();

  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  ~RedisConnection();

 private:
  struct Free {
    void operator()(redisContext* context) const noexcept;
  };

  RedisConnection() = default;
  RedisFailure start(Descriptor socket, const RedisUrl& url, TlsTrust& trust, Deadline deadline);
  RedisFailure log_in(const RedisUrl& url, Deadline deadline);
  RedisFailure send(Deadline deadline);
  RedisFailure receive(Deadline deadline);
  RedisFailure failure_of_context() const;

  Descriptor socket_;  // outlives the two that use it
  TlsSession session_;
  std::unique_ptr<redisContext, Free> context_;
  RedisReply reply_;  // the one being received
  bool out_of_memory_ = false;
  bool is_broken_ = false;

  friend struct ReplyBuilder;
};

}  // namespace jitsmith
