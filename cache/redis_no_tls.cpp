// What redis_tls.cpp is in a build without hiredis_ssl. rediss:// is refused before any of it is needed.
#include <jitsmith/cache/redis_tls.hpp>

namespace jitsmith {

bool has_redis_tls() {
  return false;
}

void TlsTrust::Free::operator()(ssl_ctx_st*) const noexcept {}

ssl_ctx_st* TlsTrust::get() {
  return nullptr;
}

void TlsSession::Free::operator()(ssl_st*) const noexcept {}

RedisFailure TlsSession::begin(TlsTrust&, redisContext&, const std::string&, Deadline) {
  return {RedisFault::tls_unavailable, 0};
}

short TlsSession::wanted_events(short otherwise) const {
  return otherwise;
}

std::string describe_certificate_error(int error) {
  return std::to_string(error);
}

}  // namespace jitsmith
