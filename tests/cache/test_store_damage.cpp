// What a damaged disk, a power cut or another key may have left under the name of an entry.
#include "store_bench.hpp"

#include <sys/resource.h>

#include <algorithm>

using namespace jitsmith;
using namespace jitsmith::test;

TEST_SUITE_BEGIN("Store damage");

TEST_CASE("F3: A damaged entry is a miss, is removed, and can be put again") {
  Bench bench;
  const auto good = encode(bench.entry);
  auto bad = good;
  SUBCASE("empty, as after a power cut") {
    bad.clear();
  }
  SUBCASE("prefix, as after a power cut") {
    bad.resize(bad.size() / 2);
  }
  SUBCASE("zeros, as after a power cut") {
    std::ranges::fill(bad, std::byte{0});
  }
  SUBCASE("one bit") {
    bad.back() ^= std::byte{1};
  }
  SUBCASE("trailing garbage") {
    bad.push_back(std::byte{'x'});
  }
  SUBCASE("something else") {
    bad.assign(5000, std::byte{'#'});
  }
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  write_bytes(bench.path(), bad);
  CHECK_FALSE(bench.get());
  CHECK_FALSE(fs::exists(bench.path()));
  CHECK(bench.stats().corrupt == 1);
  CHECK(bench.stats().repaired == 1);
  REQUIRE(bench.told.size() == 2);
  CHECK(bench.told[0].starts_with("cache.corrupt: "));
  CHECK(bench.told[1].starts_with("cache.repaired: "));
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F1: Truncated at every length it is a miss and is replaced") {
  Bench bench;
  const auto good = encode(bench.entry);
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  for (std::size_t length = 0; length < good.size(); ++length) {
    write_bytes(bench.path(), std::span(good).first(length));
    REQUIRE_FALSE(bench.get());
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    REQUIRE(bench.get() == bench.entry);
  }
}

TEST_CASE("F2: With any byte flipped it is a miss and is replaced") {
  Bench bench;
  const auto good = encode(bench.entry);
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    auto bad = good;
    bad[at] ^= std::byte{0xff};
    write_bytes(bench.path(), bad);
    REQUIRE_FALSE(bench.get());
    if (at == 8 || at == 9)
      bench.open();              // a newer version, as it seems: this store would leave it alone for good
    if (at % 16 != 0) continue;  // a put waits for the disk
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    REQUIRE(bench.get() == bench.entry);
  }
  CHECK(bench.stats().corrupt + bench.stats().newer == good.size());
}

TEST_CASE("F4: Lengths that lie make the store allocate nothing near what they say") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  auto bad = encode(bench.entry);
  for (std::size_t at = 16; at < 28; ++at) bad[at] = std::byte{0xff};  // both lengths
  CHECK(in_child([&] {
          write_bytes(bench.path(), bad);
          rusage before{}, after{};
          ::getrusage(RUSAGE_SELF, &before);
          const bool missed = !bench.get();
          ::getrusage(RUSAGE_SELF, &after);
          return missed && after.ru_maxrss - before.ru_maxrss < 8 * 1024 ? 0 : 1;
        }) == 0);
}

TEST_CASE("F45: Whatever a power cut leaves of an entry or a temporary file, the next put makes it good") {
  const auto good = encode(sample_entry());
  std::vector<std::vector<std::byte>> states{{}, std::vector<std::byte>(good.size())};
  for (const std::size_t kept : {std::size_t{1}, std::size_t{60}, good.size() - 1}) {
    states.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(kept));
    states.push_back(states.back());
    states.back().resize(good.size());  // zero-filled from there on
  }
  for (const auto& state : states) {
    Bench bench;
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    const fs::path temporary = bench.shard() / (".t-" + std::string(32, 'a'));
    write_bytes(temporary, state);
    write_bytes(bench.path(), state);
    CHECK_FALSE(bench.get());
    CHECK(bench.stats().corrupt == 1);
    CHECK(bench.put(bench.entry) == PutResult::stored);
    CHECK(bench.get() == bench.entry);
    CHECK(fs::exists(temporary));  // its writer may be alive
    bench.clock.advance(k_leftover_age + std::chrono::minutes(1));
    bench.open();  // a later process
    CHECK(bench.put(Bench::numbered(1)) == PutResult::stored);
    CHECK_FALSE(fs::exists(temporary));
    CHECK(bench.stats().swept == 1);
    CHECK(bench.get() == bench.entry);
  }
}

TEST_CASE("A damaged entry that another process has replaced meanwhile is left alone") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  const auto good = encode(bench.entry);
  write_bytes(bench.path(), std::span(good).first(80));
  bench.faulty.before_next(Call::stat_at, [&] {
    write_bytes(bench.shard() / "new", good);
    ::chmod((bench.shard() / "new").c_str(), 0600);
    fs::rename(bench.shard() / "new", bench.path());
  });
  CHECK_FALSE(bench.get());
  CHECK(fs::exists(bench.path()));
  CHECK(bench.stats().repaired == 0);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F19: A damaged entry that cannot be removed is not read twice, until it is replaced [fault]") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  write_bytes(bench.path(), {});
  bench.faulty.fail(Call::unlink, 1, EBUSY);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().repair_failed == 1);
  bench.faulty.forget();
  CHECK_FALSE(bench.get());
  CHECK(bench.faulty.calls().empty());
  CHECK(bench.stats().known_bad == 1);
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F5: An entry under another key's name is not served, and not removed") {
  Bench bench;
  const Entry other = sample_entry("another key");
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  REQUIRE(bench.put(other) == PutResult::stored);
  fs::copy_file(entry_path(bench.root, digest_of(other.key_text)), bench.path(),
                fs::copy_options::overwrite_existing);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().mismatched == 1);
  CHECK(fs::exists(bench.path()));
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F6: Two keys at one address: the last one put is served, to its own key only") {
  Bench bench;
  Entry other = sample_entry("another key");
  other.payload = elf_payload(50, 0x22);
  const Digest address{1, 2};
  CHECK(bench.store->put(bench.entry, address) == PutResult::stored);
  CHECK(bench.store->get(bench.entry.key_text, address) == bench.entry);
  CHECK_FALSE(bench.store->get(other.key_text, address));
  CHECK_FALSE(bench.store->get(bench.entry.key_text.substr(0, 3), address));
  CHECK_FALSE(bench.store->get(bench.entry.key_text + "x", address));
  CHECK(bench.store->put(other, address) == PutResult::stored);
  CHECK(bench.store->get(other.key_text, address) == other);
  CHECK_FALSE(bench.store->get(bench.entry.key_text, address));
}

TEST_CASE("F7: A newer format is a miss and stays for those who know it") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  auto newer = encode(bench.entry);
  newer[8] = std::byte{2};
  write_bytes(bench.path(), newer);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().newer == 1);
  CHECK(bench.stats().corrupt == 0);
  CHECK(read_bytes(bench.path()) == newer);
}

TEST_CASE("F26: Two versions that share a directory do not replace each other's entries") {
  Bench bench;
  Entry later = sample_entry("made by a later version\n");
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  auto newer = encode(bench.entry);
  newer[8] = std::byte{2};
  write_bytes(bench.path(), newer);
  // The older version misses, compiles, and would store: the later one's entry stays.
  CHECK_FALSE(bench.get());
  CHECK(bench.put(bench.entry) == PutResult::off);
  CHECK(read_bytes(bench.path()) == newer);
  CHECK(bench.stats().skipped == 1);
  // What only one of them wants is kept as ever, and neither lists nor trims the other's as damage.
  CHECK(bench.put(later) == PutResult::stored);
  bench.store->list([&](const ListedEntry& listed) {
    CHECK(listed.is_newer == (listed.digest == bench.digest));
    CHECK(listed.problem == (listed.is_newer ? "newer format 2" : ""));
  });
  CHECK(bench.get(later.key_text) == later);
  CHECK(bench.stats().corrupt == 0);
}

TEST_SUITE_END();
