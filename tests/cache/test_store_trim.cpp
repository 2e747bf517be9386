// What a trim removes, in which order, and what it leaves alone.
#include "store_bench.hpp"

#include <algorithm>

using namespace jitsmith;
using namespace jitsmith::test;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

CacheLimits at_most(std::uint64_t entries) {
  return {.max_bytes = 0, .max_entries = entries};
}

std::vector<int> range(int begin, int end) {
  std::vector<int> numbers;
  for (int i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

std::uint64_t blocks_of(const fs::path& path) {
  struct ::stat stat {};
  REQUIRE(::stat(path.c_str(), &stat) == 0);
  return static_cast<std::uint64_t>(stat.st_blocks) * 512;
}

fs::path temporary_in(const fs::path& shard, char digit) {
  return shard / (".t-" + std::string(32, digit));
}

}  // namespace

TEST_SUITE_BEGIN("Store trim");

TEST_CASE("F36: Trim removes the oldest first, down to 80 % of the limit, and says so") {
  Bench bench;
  bench.fill(20);
  const std::uint64_t each = blocks_of(bench.numbered_path(0));
  const TrimResult result = bench.store->trim(at_most(10), TrimMode::remove);
  CHECK(bench.left_of(20) == range(12, 20));
  CHECK(result.entries == 20);
  CHECK(result.bytes == 20 * each);
  CHECK(result.removed_entries == 12);
  CHECK(result.removed_bytes == 12 * each);
  CHECK(result.failed == 0);
  CHECK(bench.stats().trims == 1);
  CHECK(bench.stats().trimmed == 12);
  CHECK(bench.stats().trimmed_bytes == 12 * each);
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].starts_with("cache.trimmed: "));
  CHECK(bench.told[0].find("removed 12 of 20 entries") != std::string::npos);
  CHECK(bench.faulty.count(Call::read) == 0);  // nothing is opened to be looked at

  // Within the limit nothing more is done, nor told.
  CHECK(bench.store->trim(at_most(8), TrimMode::remove).removed_entries == 0);
  CHECK(bench.stats().trims == 1);
  CHECK(bench.told.size() == 1);
}

TEST_CASE("F36: Sizes are those of the blocks on the disk") {
  Bench bench;
  bench.fill(10, 5000);
  const std::uint64_t each = blocks_of(bench.numbered_path(0));
  REQUIRE(each >= 5000);
  CHECK(bench.store->trim({10 * each, 0}, TrimMode::remove).removed_entries == 0);
  CHECK(bench.store->trim({10 * each - 1, 0}, TrimMode::remove).removed_bytes == 3 * each);
  CHECK(bench.left_of(10) == range(3, 10));
}

TEST_CASE("F36: Limits of zero are none") {
  Bench bench;
  bench.fill(3);
  CHECK(bench.store->trim({0, 0}, TrimMode::remove).removed_entries == 0);
  CHECK(bench.left_of(3) == range(0, 3));
}

TEST_CASE("F36: Entries younger than ten minutes are spared, over the limit or not") {
  Bench bench;
  bench.fill(4);
  set_age(bench.numbered_path(0), minutes(9));
  set_age(bench.numbered_path(1), minutes(11));
  set_age(bench.numbered_path(2), minutes(0));
  const TrimResult result = bench.store->trim(at_most(1), TrimMode::remove);
  CHECK(result.removed_entries == 2);
  CHECK(result.failed == 0);
  CHECK(bench.left_of(4) == std::vector<int>{0, 2});
  CHECK(result.spared == 2);
  CHECK(bench.store->trim(at_most(1), TrimMode::dry_run).spared == 2);
  CHECK(bench.store->trim(at_most(2), TrimMode::remove).spared == 0);  // within the limit
}

TEST_CASE("F36: A hit keeps an entry from being the oldest") {
  Bench bench;
  bench.fill(5);
  CHECK(bench.get(Bench::numbered(0).key_text));
  bench.store->trim(at_most(4), TrimMode::remove);
  CHECK(bench.left_of(5) == std::vector<int>{0, 3, 4});
}

TEST_CASE("F36: Times in the future count as old, unless a clock of another machine may be so far ahead") {
  Bench bench;
  bench.fill(4);
  set_age(bench.numbered_path(3), -hours(24 * 365));
  set_age(bench.numbered_path(2), -minutes(5));
  bench.store->trim(at_most(3), TrimMode::remove);
  CHECK(bench.left_of(4) == std::vector<int>{1, 2});
  bench.store->trim(at_most(1), TrimMode::remove);
  CHECK(bench.left_of(4) == std::vector<int>{2});
}

TEST_CASE("F36: What is not exactly ours is not touched, nor counted") {
  Bench bench;
  bench.fill(3);
  const fs::path shard = bench.numbered_path(0).parent_path();
  const Digest digest = digest_of(Bench::numbered(0).key_text);
  const std::string hex(32, '0'), name = entry_name(digest);
  const std::vector<fs::path> strangers = {
      shard / ".nfs000000000001",
      shard / "notes",
      shard / (name + ".bak"),
      shard / ("x" + name),
      shard / (".t-" + hex + ".old"),
      shard / (".t-" + hex.substr(1)),
      shard / entry_name({~digest.high, 7}),  // sound as a name, in a shard not its own
      bench.root / "v1" / entry_name(digest),
      bench.root / "v1" / (".t-" + hex),
      bench.root / "v1" / "zz" / (hex + ".jse"),
      bench.root / "notes"};
  fs::create_directory(bench.root / "v1" / "zz");
  for (const fs::path& path : strangers) write_bytes(path, std::vector<std::byte>(10));
  const fs::path folder = shard / entry_name({digest.high, 1}), link = shard / entry_name({digest.high, 2});
  fs::create_directory(folder);
  fs::create_symlink("notes", link);
  for (const fs::path& path : strangers) set_age(path, hours(24 * 365));
  for (const fs::path& path : {folder, link}) set_age(path, hours(24 * 365));

  const TrimResult result = bench.store->trim(at_most(1), TrimMode::remove);
  CHECK(result.entries == 3);
  CHECK(result.removed_entries == 3);
  CHECK(result.swept == 0);
  CHECK(result.failed == 0);
  for (const fs::path& path : strangers) CHECK_MESSAGE(fs::exists(path), path);
  CHECK(fs::exists(folder));
  CHECK(fs::is_symlink(link));
}

TEST_CASE("F36: Shards that are not trusted are passed by") {
  Bench bench;
  bench.fill(3);
  REQUIRE(::chmod(bench.numbered_path(0).parent_path().c_str(), 0777) == 0);
  const TrimResult result = bench.store->trim(at_most(1), TrimMode::remove);
  CHECK(result.entries == 2);
  CHECK(bench.left_of(3) == std::vector<int>{0});
}

TEST_CASE("F36: Leftovers of dead writers go after an hour, whatever the limits") {
  Bench bench;
  bench.fill(1);
  const fs::path shard = bench.numbered_path(0).parent_path();
  for (const char digit : {'a', 'b', 'c', 'd'})
    write_bytes(temporary_in(shard, digit), std::vector<std::byte>(10));
  set_age(temporary_in(shard, 'a'), minutes(61));
  set_age(temporary_in(shard, 'b'), minutes(59));
  set_age(temporary_in(shard, 'c'), -minutes(61));
  set_age(temporary_in(shard, 'd'), -minutes(59));
  const TrimResult dry = bench.store->trim({}, TrimMode::dry_run);
  CHECK(dry.swept == 2);
  CHECK(fs::exists(temporary_in(shard, 'a')));
  const TrimResult result = bench.store->trim({}, TrimMode::remove);
  CHECK(result.swept == 2);
  CHECK(result.removed_entries == 0);
  CHECK_FALSE(fs::exists(temporary_in(shard, 'a')));
  CHECK(fs::exists(temporary_in(shard, 'b')));
  CHECK_FALSE(fs::exists(temporary_in(shard, 'c')));
  CHECK(fs::exists(temporary_in(shard, 'd')));
  CHECK(bench.stats().swept == 2);
}

TEST_CASE("F36: A dry run reports what would be done, and changes nothing") {
  Bench bench;
  bench.fill(20);
  const auto stats = to_string(bench.stats());
  const auto files = files_below(bench.root);
  const TrimResult dry = bench.store->trim(at_most(10), TrimMode::dry_run);
  CHECK(bench.faulty.count(Call::unlink) == 0);
  CHECK_FALSE(fs::exists(bench.root / "v1" / "locks"));
  CHECK(files_below(bench.root) == files);
  CHECK(to_string(bench.stats()) == stats);
  CHECK(bench.told.empty());
  const TrimResult done = bench.store->trim(at_most(10), TrimMode::remove);
  CHECK(dry.entries == done.entries);
  CHECK(dry.bytes == done.bytes);
  CHECK(dry.removed_entries == done.removed_entries);
  CHECK(dry.removed_bytes == done.removed_bytes);
}

TEST_CASE("F19: An entry that cannot be removed is counted, and the next oldest goes in its place [fault]") {
  for (const int error : {EBUSY, EPERM, EACCES, EIO}) {
    CAPTURE(error);
    Bench bench;
    bench.fill(20);
    bench.faulty.fail(Call::unlink, 2, error);
    const TrimResult result = bench.store->trim(at_most(10), TrimMode::remove);
    CHECK(result.removed_entries == 12);
    CHECK(result.failed == 1);
    CHECK(bench.stats().trim_failed == ErrorCounts{{error, 1}});
    const std::vector<int> left = bench.left_of(20);
    REQUIRE(left.size() == 8);
    CHECK(left[0] < 12);  // the one that could not be removed, and the youngest seven
    CHECK(left[1] == 13);
    CHECK(bench.put(bench.entry) == PutResult::stored);  // trouble with trimming does not stop writing
  }
}

TEST_CASE("F19: A leftover that cannot be removed is counted, and the rest goes on [fault]") {
  Bench bench;
  bench.fill(5);
  const fs::path leftover = temporary_in(bench.numbered_path(0).parent_path(), 'a');
  write_bytes(leftover, {});
  set_age(leftover, hours(2));
  bench.faulty.fail(Call::unlink, 1, EBUSY);
  const TrimResult result = bench.store->trim(at_most(1), TrimMode::remove);
  CHECK(result.failed == 1);
  CHECK(result.swept == 0);
  CHECK(result.removed_entries == 5);
  CHECK(fs::exists(leftover));
}

TEST_CASE("F37: An entry that is gone already is no failure, and not counted twice [fault]") {
  Bench bench;
  bench.fill(20);
  bench.faulty.fail(Call::unlink, 1, ENOENT);
  const TrimResult result = bench.store->trim(at_most(10), TrimMode::remove);
  CHECK(result.removed_entries == 11);
  CHECK(result.failed == 0);
  CHECK(bench.stats().trim_failed.empty());
  // Gone between the listing of its shard and the look at it.
  bench.faulty.fail(Call::stat_at, 1, ENOENT);
  CHECK(bench.store->trim({}, TrimMode::remove).failed == 0);
}

TEST_CASE("F18: A shard that cannot be read is counted, the others are trimmed [fault]") {
  for (const Call call : {Call::list, Call::stat_at}) {
    Bench bench;
    bench.fill(10);
    bench.faulty.fail(call, 1, EIO);
    const TrimResult result = bench.store->trim(at_most(1), TrimMode::remove);
    CHECK(result.failed == 1);
    CHECK(result.removed_entries >= 8);
    CHECK(bench.stats().trim_failed == ErrorCounts{{EIO, 1}});
  }
}

TEST_CASE("F24: Without working locks it trims all the same [fault]") {
  for (const int error : {ENOLCK, EOPNOTSUPP}) {
    Bench bench;
    bench.fill(5);
    bench.faulty.fail(Call::lock, 1, error);
    CHECK(bench.store->trim(at_most(1), TrimMode::remove).removed_entries == 5);
    CHECK(bench.stats().lock_failed == ErrorCounts{{error, 1}});
  }
}

TEST_CASE("Any failing call of a trim leaves no descriptor and a store that works [fault]") {
  for (int nth = 1; nth < 60; nth += 3) {
    CAPTURE(nth);
    Bench bench;
    bench.fill(3);
    bench.faulty.fail(Call::any, nth, ESTALE);
    const int before = open_descriptors();
    bench.store->trim(at_most(1), TrimMode::remove);
    CHECK(open_descriptors() == before);
    bench.faulty.forget();
    CHECK(bench.put(bench.entry) == PutResult::stored);
    CHECK(bench.get() == bench.entry);
  }
}

TEST_SUITE_END();
