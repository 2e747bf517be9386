// Where a Redis server is, read from text. Pure: no look-up, no connection.
//
// The text may hold a password, and a malformed one may hold it anywhere: a refusal names the part that is
// wrong and repeats nothing of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

struct RedisUrl {
  bool tls = false;
  std::string user;      // decoded; empty: the default user
  std::string password;  // decoded
  std::string host;      // a name, or an address without brackets
  std::uint16_t port = 6379;
  std::uint32_t database = 0;

  bool has_credentials() const { return !user.empty() || !password.empty(); }

  // "redis://cache.example:6379/0": all that may be printed.
  std::string endpoint() const;
};

struct ParsedRedisUrl {
  std::optional<RedisUrl> url;
  std::string refusal;  // one sentence, when there is no URL
};

// redis[s]://[user[:password]@]host[:port][/database]. An IPv6 address stands in brackets; user and password
// may be percent-encoded, and must be where they hold one of / ? # %.
ParsedRedisUrl parse_redis_url(std::string_view text);

}  // namespace jitsmith
