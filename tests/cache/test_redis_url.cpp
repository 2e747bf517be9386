#include <jitsmith/cache/redis_url.hpp>

#include <doctest/doctest.h>

using namespace jitsmith;

namespace {

RedisUrl parsed(std::string_view text) {
  CAPTURE(text);
  auto result = parse_redis_url(text);
  CHECK(result.refusal == "");
  REQUIRE(result.url);
  return *std::move(result.url);
}

std::string refusal(std::string_view text) {
  CAPTURE(text);
  const auto result = parse_redis_url(text);
  CHECK_FALSE(result.url);
  return result.refusal;
}

}  // namespace

TEST_SUITE_BEGIN("RedisUrl");

TEST_CASE("A host alone has the default port and database, and no credentials") {
  const RedisUrl url = parsed("redis://cache.example");
  CHECK_FALSE(url.tls);
  CHECK(url.host == "cache.example");
  CHECK(url.port == 6379);
  CHECK(url.database == 0);
  CHECK_FALSE(url.has_credentials());
  CHECK(url.endpoint() == "redis://cache.example:6379/0");
}

TEST_CASE("Everything at once is read, and the endpoint has no credentials") {
  const RedisUrl url = parsed("rediss://builder:s3cret@10.0.0.7:6380/12");
  CHECK(url.tls);
  CHECK(url.user == "builder");
  CHECK(url.password == "s3cret");
  CHECK(url.host == "10.0.0.7");
  CHECK(url.port == 6380);
  CHECK(url.database == 12);
  CHECK(url.endpoint() == "rediss://10.0.0.7:6380/12");
}

TEST_CASE("User and password are each optional and percent-decoded") {
  CHECK(parsed("redis://:pw@h").user == "");
  CHECK(parsed("redis://:pw@h").password == "pw");
  CHECK(parsed("redis://me@h").user == "me");
  CHECK(parsed("redis://me@h").password == "");
  CHECK_FALSE(parsed("redis://@h").has_credentials());
  CHECK_FALSE(parsed("redis://:@h").has_credentials());
  CHECK(parsed("redis://a%40b:%2f%3A%25%00x@h").user == "a@b");
  CHECK(parsed("redis://a%40b:%2f%3A%25%00x@h").password == std::string("/:%\0x", 5));
  CHECK(parsed("redis://u:p:q@h").password == "p:q");
  CHECK(parsed("redis://u:p@ss@h").password == "p@ss");
  CHECK(parsed("redis://u:p@ss@h").host == "h");
}

TEST_CASE("An IPv6 address stands in brackets") {
  const RedisUrl url = parsed("redis://u:p@[2001:db8::1]:7000/3");
  CHECK(url.host == "2001:db8::1");
  CHECK(url.port == 7000);
  CHECK(url.endpoint() == "redis://[2001:db8::1]:7000/3");
  CHECK(parsed("redis://[::1]").port == 6379);
  CHECK(parsed("redis://[::1]/1").database == 1);
}

TEST_CASE("A trailing slash is the default database") {
  CHECK(parsed("redis://h/").database == 0);
  CHECK(parsed("redis://h:1/").port == 1);
  CHECK(parsed("redis://h:65535/2147483647").database == 2147483647u);
}

TEST_CASE("A refusal names the part that is wrong") {
  const auto names = [](std::string_view text, std::string_view part) {
    const std::string reason = refusal(text);
    CAPTURE(reason);
    CHECK(reason.find(part) != std::string::npos);
    CHECK(reason.find("redis[s]://") != std::string::npos);
  };
  for (const auto* text : {"", "redis", "http://h", "REDIS://h", "redis:h", "h:6379", " redis://h"})
    names(text, "the beginning");
  for (const auto* text : {"redis://", "redis:///0", "redis://u:p@", "redis://:6379"})
    names(text, "the host");
  for (const auto* text : {"redis://h h", "redis://h\n", "redis://%41", "redis://[::1", "redis://[x]",
                           "redis://[::1]6", "redis://[fe80::1%25eth0]", "redis://::1", "redis://a:1:2"})
    names(text, "the host");
  for (const auto* text : {"redis://h:", "redis://h:0", "redis://h:65536", "redis://h:+1", "redis://h:1x",
                           "redis://h:99999999999999999999", "redis://[::1]:"})
    names(text, "the port");
  for (const auto* text : {"redis://h/x", "redis://h/-1", "redis://h/0/", "redis://h/2147483648"})
    names(text, "the database");
  for (const auto* text : {"redis://u:%@h", "redis://u:%4@h", "redis://%zz:p@h", "redis://u:%+1@h"})
    names(text, "the user or password");
  names("redis://u:p/q@h", "the user or password");
  for (const auto* text : {"redis://h/0?db=1", "redis://h#x", "redis://u:p?q@h"}) names(text, "the end");
  CHECK(refusal("redis://" + std::string(300, 'a')).find("253") != std::string::npos);
}

TEST_CASE("No refusal and no endpoint repeats a secret, wherever a mistake has put it") {
  for (const char* text :
       {"hunter2", "hunter2://h", "http://u:hunter2@h", "redis:u:hunter2@h", "redis://u:hunter2@",
        "redis://u:hunter2", "redis://u:hunter2/0", "redis://u:hunter2@h:x", "redis://u:hunter2/x@h",
        "redis://u:x/hunter2@h", "redis://u:hunter2?x@h", "redis://u:%hunter2@h", "redis://h/hunter2",
        "redis://u:hunter2@[h", "redis://:hunter2@h h", "redis://h:hunter2@", "redis://hunter2:@h:0"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("hunter2") == std::string::npos);
  }
  CHECK(parsed("redis://hunter2:hunter2@h").endpoint().find("hunter2") == std::string::npos);
}

TEST_SUITE_END();
