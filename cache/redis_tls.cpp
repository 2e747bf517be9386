#include <jitsmith/cache/redis_tls.hpp>

#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <poll.h>

namespace jitsmith {
namespace {

// Against the names or the addresses in the certificate, whichever the URL has.
bool require_host(SSL* session, const std::string& host) {
  in6_addr address{};
  const bool is_address =
      ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
  if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  return SSL_set1_host(session, host.c_str()) == 1 && SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

RedisFailure failure_of_handshake(SSL* session) {
  const auto verified = static_cast<int>(SSL_get_verify_result(session));
  return verified == X509_V_OK ? RedisFailure{RedisFault::tls_refused, 0}
                               : RedisFailure{RedisFault::tls_untrusted, verified};
}

RedisFailure shake_hands(SSL* session, int socket, Deadline deadline) {
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(session);
    // A handshake without a verified certificate fails by itself; that it does is not left to one setting.
    if (result == 1 && SSL_get_verify_result(session) == X509_V_OK) return {};
    if (result == 1) return failure_of_handshake(session);
    const int why = SSL_get_error(session, result);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return failure_of_handshake(session);
    if (!wait_until_ready(socket, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline))
      return {RedisFault::timed_out, 0};
  }
}

}  // namespace

bool has_redis_tls() {
  return true;
}

void TlsTrust::Free::operator()(ssl_ctx_st* context) const noexcept {
  SSL_CTX_free(context);
}

ssl_ctx_st* TlsTrust::get() {
  if (context_) return context_.get();
  // Kept only when it is complete: a child that is forked meanwhile makes its own.
  decltype(context_) context(SSL_CTX_new(TLS_client_method()));
  if (!context) return nullptr;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_set_default_verify_paths(context.get()) != 1 ||
      SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return nullptr;
  context_ = std::move(context);
  return context_.get();
}

void TlsSession::Free::operator()(ssl_st* session) const noexcept {
  SSL_free(session);
}

RedisFailure TlsSession::begin(TlsTrust& trust, redisContext& context, const std::string& host,
                               Deadline deadline) {
  if (trust.get() == nullptr) return {RedisFault::tls_unavailable, 0};
  session_.reset(SSL_new(trust.get()));
  if (!session_ || !require_host(session_.get(), host)) return {RedisFault::tls_unavailable, 0};
  // hiredis takes a reference when it succeeds, and leaves it to us when it does not.
  SSL_up_ref(session_.get());
  RedisFailure failure;
  if (redisInitiateSSL(&context, session_.get()) != REDIS_OK) {
    SSL_free(session_.get());
    failure = failure_of_handshake(session_.get());
  } else {
    failure = shake_hands(session_.get(), context.fd, deadline);
  }
  if (failure) ERR_clear_error();  // the queue is the thread's: the program would take them for its own
  return failure;
}

short TlsSession::wanted_events(short otherwise) const {
  if (session_ && SSL_want_read(session_.get())) return POLLIN;
  if (session_ && SSL_want_write(session_.get())) return POLLOUT;
  return otherwise;
}

std::string describe_certificate_error(int error) {
  return X509_verify_cert_error_string(error);
}

}  // namespace jitsmith
