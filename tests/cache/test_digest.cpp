#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/names.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace jitsmith;

TEST_SUITE_BEGIN("Digest");

TEST_CASE("Is XXH3-128, printed as xxhsum prints it") {
  // Published test vectors of XXH3-128 with seed 0: they pin the addresses of all caches on disk.
  CHECK(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(digest_of("a").hex() == "a96faf705af16834e6c632b61e964e1f");
}

TEST_CASE("Hex form goes both ways") {
  const Digest digest{0x0123456789abcdef, 0x00000000000000ff};
  CHECK(digest.hex() == "0123456789abcdef00000000000000ff");
  CHECK(Digest::from_hex(digest.hex()) == digest);
}

TEST_CASE("Anything but 32 lower-case hex digits is no digest") {
  const std::string good(32, 'a');
  REQUIRE(Digest::from_hex(good));
  CHECK_FALSE(Digest::from_hex(""));
  CHECK_FALSE(Digest::from_hex(good.substr(1)));
  CHECK_FALSE(Digest::from_hex(good + "a"));
  for (const char bad : {'A', 'F', 'g', '/', ':', '`', ' ', '\0', '-', '\xff'}) {
    for (const std::size_t place : {0, 15, 16, 31}) {
      std::string text = good;
      text[place] = bad;
      CHECK_FALSE(Digest::from_hex(text));
    }
  }
}

TEST_CASE("Parts hash like the whole") {
  const std::string text(1000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  CHECK(digest_of_parts({bytes.first(44), bytes.subspan(44, 0), bytes.subspan(44)}) == digest_of(text));
}

TEST_CASE("Names are recognised exactly") {
  const Digest digest = digest_of("key");
  CHECK(parse_entry_name(entry_name(digest)) == digest);
  CHECK(entry_name(digest) == digest.hex() + ".jse");
  CHECK(shard_name(digest) == digest.hex().substr(0, 2));
  CHECK_FALSE(parse_entry_name(digest.hex()));
  CHECK_FALSE(parse_entry_name(digest.hex() + ".jse~"));
  CHECK_FALSE(parse_entry_name("." + digest.hex() + ".jse"));
  CHECK(is_temporary_name(".t-" + digest.hex()));
  CHECK_FALSE(is_temporary_name(".t-" + digest.hex() + "x"));
  CHECK_FALSE(is_temporary_name(".nfs" + digest.hex()));
}

TEST_CASE("Temporary names differ") {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(random_temporary_name().value());
  CHECK(names.size() == 1000);
  for (const auto& name : names) CHECK(is_temporary_name(name));
}

TEST_SUITE_END();
