#include "store_bench.hpp"

#include <algorithm>
#include <array>
#include <limits>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

std::chrono::seconds age_of(const fs::path& path) {
  struct ::stat stat {};
  REQUIRE(::stat(path.c_str(), &stat) == 0);
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() -
                                                          modification_time(stat));
}

}  // namespace

TEST_SUITE_BEGIN("Store");

TEST_CASE("Gives back what was put, from one private file") {
  Bench bench;
  CHECK_FALSE(bench.get());
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
  CHECK(files_below(bench.root) == std::vector<fs::path>{bench.path()});
  CHECK(read_bytes(bench.path()) == encode(bench.entry));
  CHECK(bench.stats().written == 1);
  CHECK(bench.told.empty());
}

TEST_CASE("What does not look like machine code is not stored") {
  Bench bench;
  SUBCASE("empty") {
    bench.entry.payload.clear();
  }
  SUBCASE("text") {
    bench.entry.payload.assign(100, std::byte{'x'});
  }
  SUBCASE("too large") {
    bench.entry.payload = elf_payload(k_entry_max_bytes);
  }
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK(bench.stats().rejected == 1);
  CHECK(files_below(bench.root).empty());
  CHECK(bench.faulty.calls().empty());
}

TEST_CASE("A hit marks an old entry as used, at most once an hour") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  const auto now = std::chrono::system_clock::now();
  using std::chrono::minutes;
  set_mtime(bench.path(), now - minutes(50));
  CHECK(bench.get());
  CHECK(bench.faulty.count(Call::touch) == 0);
  for (const auto stamp : {now - minutes(70), now + minutes(70), now - std::chrono::hours(24 * 365)}) {
    set_mtime(bench.path(), stamp);
    CHECK(bench.get());
    CHECK(std::chrono::abs(age_of(bench.path())) < minutes(1));
  }
  CHECK(bench.faulty.count(Call::touch) == 3);
  set_mtime(bench.path(), now - minutes(70));
  bench.faulty.fail(Call::touch, 1, EROFS);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("Absurd modification times do no harm") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  struct ::stat stat {};
  for (const std::int64_t seconds : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                     std::numeric_limits<std::int64_t>::max()}) {
    stat.st_mtim.tv_sec = seconds;
    const auto time = modification_time(stat);
    CHECK(std::chrono::abs(std::chrono::system_clock::now() - time) > std::chrono::hours(1));
  }
}

TEST_CASE("Remove drops one entry") {
  Bench bench;
  CHECK(bench.store->remove(bench.digest));  // was never there
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.store->remove(bench.digest));
  CHECK(bench.store->remove(bench.digest));
  CHECK_FALSE(bench.get());
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  bench.faulty.fail(Call::unlink, 1, EPERM);
  CHECK_FALSE(bench.store->remove(bench.digest));
}

TEST_CASE("List shows every entry, and says what is wrong with the bad ones") {
  Bench bench;
  std::vector<ListedEntry> listed;
  const auto collect = [&](const ListedEntry& item) { listed.push_back(item); };
  bench.store->list(collect);
  CHECK(listed.empty());

  const std::string damaged = "damaged", strayed = "strayed";
  for (const auto& key : {bench.entry.key_text, damaged, strayed})
    REQUIRE(bench.put(sample_entry(key)) == PutResult::stored);
  write_bytes(entry_path(bench.root, digest_of(damaged)), {});
  fs::copy_file(bench.path(), entry_path(bench.root, digest_of(strayed)),
                fs::copy_options::overwrite_existing);
  write_bytes(bench.shard() / "README", {});
  write_bytes(bench.shard() / (Digest{~bench.digest.high, 0}.hex() + ".jse"), {});  // in a shard not its own
  const auto stats = to_string(bench.stats());

  bench.store->list(collect);
  REQUIRE(listed.size() == 3);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (i > 0) CHECK(listed[i - 1].digest < listed[i].digest);
    if (listed[i].digest == bench.digest) {
      CHECK(listed[i].problem.empty());
      CHECK(listed[i].key_text == bench.entry.key_text);
      CHECK(listed[i].facts == bench.entry.facts);
      CHECK(listed[i].kind == bench.entry.kind);
      CHECK(listed[i].size_bytes == encode(bench.entry).size());
    } else if (listed[i].digest == digest_of(damaged)) {
      CHECK(listed[i].problem == "too short");
    } else {
      CHECK(listed[i].problem == "stored under the name of another key");
    }
  }
  CHECK(to_string(bench.stats()) == stats);
  CHECK(fs::exists(entry_path(bench.root, digest_of(damaged))));
}

TEST_CASE("List goes in order of digest, also within a shard") {
  Bench bench;
  for (std::uint64_t low = 10; low-- > 0;) {
    REQUIRE(bench.store->put(bench.entry, Digest{low % 2 << 63, low}) == PutResult::stored);
  }
  std::vector<Digest> seen;
  bench.store->list([&](const ListedEntry& item) { seen.push_back(item.digest); });
  CHECK(seen.size() == 10);
  CHECK(std::ranges::is_sorted(seen));
}

TEST_CASE("Clear removes what is ours, and nothing else") {
  Bench bench;
  const std::array<std::string, 3> keys = {bench.entry.key_text, "b", "c"};
  std::uint64_t bytes = 10;
  for (const auto& key : keys) {
    REQUIRE(bench.put(sample_entry(key)) == PutResult::stored);
    bytes += encode(sample_entry(key)).size();
  }
  const std::string hex(32, '0');
  write_bytes(bench.shard() / (".t-" + hex), std::vector<std::byte>(10));
  const std::vector<std::string> strangers = {
      ".nfs0001",           "x.jse",
      hex + ".JSE",         ".t-123",
      ".t-" + hex + ".bak", Digest{~bench.digest.high, 0}.hex() + ".jse"};
  for (const auto& name : strangers) write_bytes(bench.shard() / name, {});
  write_bytes(bench.root / "notes", {});
  fs::create_directory(bench.root / "v1" / "zz");
  write_bytes(bench.root / "v1" / "zz" / (hex + ".jse"), {});

  bench.faulty.fail(Call::unlink, 1, EBUSY);
  const ClearResult first = bench.store->clear();
  CHECK(first.failed == 1);
  const ClearResult second = bench.store->clear();
  CHECK(second.failed == 0);
  CHECK(first.files + second.files == 4);
  CHECK(first.bytes + second.bytes == bytes);
  CHECK(files_below(bench.root).size() == strangers.size() + 2);
  CHECK(bench.put(bench.entry) == PutResult::stored);
}

TEST_SUITE_END();
