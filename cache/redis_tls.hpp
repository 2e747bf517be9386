// TLS for a connection to Redis: the server's certificate must be from an authority that the system trusts,
// and for the host that was asked for. (hiredis would not check the latter.)
//
// Built in two ways: without hiredis_ssl, has_redis_tls() is false and nothing else may be called.
#pragma once

#include <jitsmith/cache/redis_failure.hpp>
#include <jitsmith/cache/tcp_connect.hpp>

#include <memory>
#include <string>

struct redisContext;
struct ssl_ctx_st;
struct ssl_st;

namespace jitsmith {

bool has_redis_tls();

// The authorities, which take milliseconds to read, and the rules. One for all connections of a remote tier.
class TlsTrust {
 public:
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };

  // Reads the trust store at its first use. Null: there is none to be had.
  ssl_ctx_st* get();

 private:
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

// The session of one connection, shared with the redisContext that it was begun on.
class TlsSession {
 public:
  struct Free {
    void operator()(ssl_st* session) const noexcept;
  };

  // Makes `context`, which is connected and non-blocking, speak TLS.
  RedisFailure begin(TlsTrust& trust, redisContext& context, const std::string& host, Deadline deadline);

  bool is_active() const { return session_ != nullptr; }

  // What the session waits for, in terms of poll; `otherwise` without a session, or when it does not know.
  short wanted_events(short otherwise) const;

  // In a forked child: the memory is left, for a thread of the parent may have been about to change it.
  void abandon() { static_cast<void>(session_.release()); }

 private:
  std::unique_ptr<ssl_st, Free> session_;
};

// In English; `error` is X509_V_ERR_...
std::string describe_certificate_error(int error);

}  // namespace jitsmith
