#include <jitsmith/cache/redis_url.hpp>

#include <fmt/format.h>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace jitsmith {
namespace {

constexpr std::size_t k_host_max = 253;  // of a name in the DNS

ParsedRedisUrl refuse(std::string_view what, std::string_view rule) {
  return {std::nullopt,
          fmt::format("{} of the remote tier's URL {}; the form is redis[s]://[user[:password]@]host[:port]"
                      "[/database]",
                      what, rule)};
}

// Digits and nothing else, so that "+1", " 1" and "0x1" are refused.
template <class Number>
std::optional<Number> parse_number(std::string_view text, Number max) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    result += static_cast<char>(byte);
    i += 2;
  }
  return result;
}

bool is_host_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= k_host_max && std::ranges::all_of(text, allowed);
}

bool is_ipv6_address(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

// Takes `text` up to the first `separator`, which is dropped; all of it when there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return taken;
}

}  // namespace

std::string RedisUrl::endpoint() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}/{}", tls ? "rediss" : "redis", is_ipv6 ? "[" : "", host,
                     is_ipv6 ? "]" : "", port, database);
}

ParsedRedisUrl parse_redis_url(std::string_view text) {
  RedisUrl url;
  if (text.starts_with("rediss://")) {
    url.tls = true;
  } else if (!text.starts_with("redis://")) {
    return refuse("the beginning", "is neither redis:// nor rediss://");
  }
  std::string_view path = text.substr(text.find("//") + 2);
  if (path.find_first_of("?#") != std::string_view::npos)
    return refuse("the end", "is taken for options, which there are none of: write %3F for ? and %23 for #");
  std::string_view place = take_until(path, '/');
  if (path.find('@') != std::string_view::npos)
    return refuse("the user or password", "holds a slash: write %2F for it");

  // The last one: a password with an @ of its own is then read as it was meant.
  if (const std::size_t at = place.rfind('@'); at != std::string_view::npos) {
    std::string_view password = place.substr(0, at);
    place.remove_prefix(at + 1);
    auto user = percent_decoded(take_until(password, ':'));
    auto decoded_password = percent_decoded(password);
    if (!user || !decoded_password)
      return refuse("the user or password",
                    "holds a percent sign without two hexadecimal digits: write %25 for it");
    url.user = *std::move(user);
    url.password = *std::move(decoded_password);
  }

  bool has_port = false;
  std::string_view port;
  if (place.starts_with('[')) {
    place.remove_prefix(1);
    const bool is_closed = place.find(']') != std::string_view::npos;
    url.host = take_until(place, ']');
    if (!is_closed || !is_ipv6_address(url.host)) return refuse("the host", "is no IPv6 address in brackets");
    has_port = place.starts_with(':');
    if (!has_port && !place.empty()) return refuse("the host", "has something behind its brackets");
    port = place.substr(has_port ? 1 : 0);
  } else {
    has_port = place.find(':') != std::string_view::npos;
    url.host = take_until(place, ':');
    port = place;
    if (port.find(':') != std::string_view::npos)
      return refuse("the host", "holds several colons: an IPv6 address stands in brackets");
    if (url.host.empty()) return refuse("the host", "is missing");
    if (!is_host_name(url.host))
      return refuse("the host", "is no name: letters, digits, dots and hyphens, 253 at most");
  }
  if (has_port) {
    const auto number = parse_number<std::uint16_t>(port, std::numeric_limits<std::uint16_t>::max());
    if (number.value_or(0) == 0) return refuse("the port", "is no number from 1 to 65535");
    url.port = *number;
  }
  if (!path.empty()) {
    const auto number = parse_number<std::uint32_t>(path, std::numeric_limits<std::int32_t>::max());
    if (!number) return refuse("the database", "is no number from 0 to 2147483647");
    url.database = *number;
  }
  return {std::move(url), {}};
}

}  // namespace jitsmith
