// A store that is somebody else's: a bundle is read, and nothing else is ever done to it.
#include "store_bench.hpp"

#include <algorithm>

using namespace jitsmith;
using namespace jitsmith::test;
using std::chrono::hours;

TEST_SUITE_BEGIN("Store read-only");

TEST_CASE("Serves hits, and marks none as used") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  set_age(bench.path(), hours(100));
  bench.open(StoreAccess::read_only);
  CHECK(bench.get() == bench.entry);
  CHECK(bench.faulty.count(Call::touch) == 0);
}

TEST_CASE("A damaged entry is counted once, told once, left alone, and not read again") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  write_bytes(bench.path(), {});
  bench.open(StoreAccess::read_only);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().bundle_corrupt == 1);
  bench.faulty.forget();
  CHECK_FALSE(bench.get());
  CHECK(bench.faulty.calls().empty());
  CHECK(bench.stats().bundle_corrupt == 1);
  CHECK(bench.stats().corrupt + bench.stats().repaired + bench.stats().repair_failed == 0);
  CHECK(fs::exists(bench.path()));
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].starts_with("bundle.corrupt: "));
}

TEST_CASE("Entries of other keys and of later versions are counted as the bundle's") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  bench.open(StoreAccess::read_only);
  CHECK_FALSE(bench.store->get("another key", bench.digest));
  CHECK(bench.stats().bundle_mismatched == 1);
  auto newer = encode(bench.entry);
  newer[8] = std::byte{2};
  write_bytes(bench.path(), newer);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().bundle_mismatched == 2);
  CHECK(bench.stats().mismatched + bench.stats().newer == 0);
}

TEST_CASE("Refusals and read errors are counted as ever [fault]") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  bench.open(StoreAccess::read_only);
  bench.faulty.fail(Call::read, 1, EIO);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().read_failed == ErrorCounts{{EIO, 1}});
  REQUIRE(::chmod(bench.path().c_str(), 0666) == 0);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().refused == 1);
}

TEST_CASE("Nothing is written, removed, cleared, trimmed or locked") {
  Bench bench;
  bench.fill(5);
  bench.open(StoreAccess::read_only, {.max_bytes = 1, .max_entries = 1});
  CHECK(bench.put(bench.entry) == PutResult::off);
  CHECK_FALSE(bench.store->remove(digest_of(Bench::numbered(0).key_text)));
  CHECK(bench.store->clear().files == 0);
  CHECK(bench.store->trim({.max_entries = 1}, TrimMode::remove).removed_entries == 0);
  CHECK(bench.store->lock_build(bench.digest, "a", std::chrono::seconds(1)).outcome ==
        LockOutcome::unavailable);
  CHECK(bench.faulty.calls().empty());
  CHECK(bench.stats().skipped == 1);
  CHECK(bench.left_of(5).size() == 5);
  CHECK(bench.told.empty());
}

TEST_SUITE_END();
