// What a cache tells of each get, for people who listen.
#include "../support/temp_dir.hpp"
#include "samples.hpp"

#include <jitsmith/cache/cache.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

// The last text and level of each event, and how often it came.
struct Heard {
  std::map<std::string, int> counts;
  std::map<std::string, Event> last;

  EventSink sink() {
    return [this](const Event& event) {
      ++counts[std::string(event.what)];
      last[std::string(event.what)] = event;
    };
  }
};

Cache heard_cache(const std::filesystem::path& root, Heard& heard) {
  return Cache({.directory = at(root), .events = heard.sink()});
}

}  // namespace

TEST_SUITE_BEGIN("Cache events");

TEST_CASE("A plain miss and a hit are told by their entry, for debugging") {
  const TempDir temp;
  Heard heard;
  Cache cache = heard_cache(temp / "cache", heard);
  const Entry entry = sample_entry();
  const std::string digest = digest_of(entry.key_text).hex();
  CHECK_FALSE(cache.get(entry.key_text));
  CHECK(heard.counts == std::map<std::string, int>{{"cache.miss", 1}});
  CHECK(heard.last["cache.miss"].level == EventLevel::debug);
  CHECK(heard.last["cache.miss"].text == "entry " + digest + " is in no tier");
  REQUIRE(cache.put(entry) == PutResult::stored);
  CHECK(cache.get(entry.key_text));
  CHECK(heard.counts == std::map<std::string, int>{{"cache.hit", 1}, {"cache.miss", 1}});
  CHECK(heard.last["cache.hit"].text == "entry " + digest + " is in the directory");
}

TEST_CASE("Each repair is told once") {
  const TempDir temp;
  Heard heard;
  Cache cache = heard_cache(temp / "cache", heard);
  for (int round = 1; round <= 2; ++round) {
    const Entry entry = sample_entry();
    REQUIRE(cache.put(entry) == PutResult::stored);
    write_bytes(entry_path(temp / "cache", digest_of(entry.key_text)), {});
    CHECK_FALSE(cache.get(entry.key_text));
    CHECK_FALSE(cache.get(entry.key_text));  // by now simply not there
    CHECK(heard.counts["cache.repaired"] == round);
    CHECK(heard.last["cache.repaired"].text ==
          "the damaged entry " + digest_of(entry.key_text).hex() + " was removed");
  }
  CHECK(heard.counts["cache.miss"] == 4);
}

TEST_SUITE_END();
