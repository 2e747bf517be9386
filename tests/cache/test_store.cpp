#include "store_bench.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <limits>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

void set_mtime(const fs::path& path, std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()).count();
  const std::array<timespec, 2> times{timespec{seconds, 0}, timespec{seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0);
}

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

TEST_CASE("Files and folders have exactly their modes, whatever the umask") {
  for (const mode_t mask : {0000, 0022, 0077, 0377}) {
    CAPTURE(mask);
    if (mask == 0377 && !is_root()) continue;
    Bench bench;
    const mode_t saved = ::umask(mask);
    CHECK(bench.put(bench.entry) == PutResult::stored);
    ::umask(saved);
    CHECK(mode_of(bench.path()) == 0600u);
    CHECK(mode_of(bench.shard()) == 0700u);
    CHECK(bench.get() == bench.entry);
  }
}

TEST_CASE("A damaged entry is a miss, is removed, and can be put again") {
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
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].starts_with("cache.corrupt: "));
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("Truncated at every length it is a miss and is replaced") {
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

TEST_CASE("A damaged entry that cannot be removed is not read twice, until it is replaced [fault]") {
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

TEST_CASE("An entry under another key's name is not served, and not removed") {
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

TEST_CASE("Two keys at one address: the last one put is served, to its own key only") {
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

TEST_CASE("A newer format is a miss and stays for those who know it") {
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

TEST_CASE("Planted entries are refused: no wait, no read, no removal") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  const fs::path outside = bench.temp.path() / "outside";
  fs::copy_file(bench.path(), outside);
  const auto swap_for = [&](auto make) {
    fs::remove(bench.path());
    make();
  };
  SUBCASE("symbolic link") {
    swap_for([&] { fs::create_symlink(outside, bench.path()); });
  }
  SUBCASE("FIFO") {
    swap_for([&] { REQUIRE(::mkfifo(bench.path().c_str(), 0600) == 0); });
  }
  SUBCASE("directory") {
    swap_for([&] { fs::create_directory(bench.path()); });
  }
  SUBCASE("group-writable") {
    REQUIRE(::chmod(bench.path().c_str(), 0620) == 0);
  }
  SUBCASE("world-writable") {
    REQUIRE(::chmod(bench.path().c_str(), 0602) == 0);
  }
  SUBCASE("huge, sparse") {
    fs::resize_file(bench.path(), k_entry_max_bytes + 1);
  }
  SUBCASE("another user's, by hard link") {
    if (!is_root()) {
      MESSAGE("skipped: needs root");
      return;
    }
    swap_for([&] {
      REQUIRE(::chown(outside.c_str(), k_other_user, k_other_user) == 0);
      fs::create_hard_link(outside, bench.path());
    });
  }
  SUBCASE("device") {
    if (!is_root()) {
      MESSAGE("skipped: needs root");
      return;
    }
    fs::remove(bench.path());
    if (::mknod(bench.path().c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) {  // /dev/zero
      MESSAGE("skipped: devices cannot be made here");
      return;
    }
  }
  bench.faulty.forget();
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().refused == 1);
  CHECK(bench.faulty.count(Call::read) == 0);
  CHECK(bench.faulty.count(Call::unlink) == 0);
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].starts_with("cache.refused: "));
  // A put replaces it, and nothing outside is written; only a folder stays in the way.
  const auto outside_before = read_bytes(outside);
  const bool is_folder = fs::is_directory(fs::symlink_status(bench.path()));
  CHECK(bench.put(bench.entry) == (is_folder ? PutResult::failed : PutResult::stored));
  CHECK(read_bytes(outside) == outside_before);
  CHECK(bench.get().has_value() == !is_folder);
}

TEST_CASE("A socket in the place of an entry is a miss") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  fs::remove(bench.path());
  if (::mknod(bench.path().c_str(), S_IFSOCK | 0600, 0) != 0) return;
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().read_failed.at(ENXIO) == 1);
}

TEST_CASE("A shard that is not ours is neither read nor written") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  const fs::path outside = bench.temp.path() / "outside";
  SUBCASE("symbolic link") {
    fs::rename(bench.shard(), outside);
    fs::create_directory_symlink(outside, bench.shard());
  }
  SUBCASE("file") {
    fs::rename(bench.shard(), outside);
    write_bytes(bench.shard(), {});
  }
  SUBCASE("world-writable") {
    REQUIRE(::chmod(bench.shard().c_str(), 0777) == 0);
  }
  SUBCASE("another user's") {
    if (!is_root()) {
      MESSAGE("skipped: needs root");
      return;
    }
    REQUIRE(::chown(bench.shard().c_str(), k_other_user, k_other_user) == 0);
  }
  const auto files = files_below(bench.temp.path()).size();
  CHECK_FALSE(bench.get());
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK(bench.stats().refused == 2);
  CHECK(files_below(bench.temp.path()).size() == files);
  CHECK_FALSE(bench.store->remove(bench.digest));
  CHECK_FALSE(bench.store->writes_closed());  // one bad folder does not stop the others
}

TEST_CASE("A directory that is swapped after it was opened stays the opened one") {
  Bench bench;
  const fs::path moved = bench.temp.path() / "moved", trap = bench.temp.path() / "trap";
  fs::create_directories(trap / "v1" / shard_name(bench.digest));
  bench.faulty.before_next(Call::open, [&] {
    fs::rename(bench.root, moved);
    fs::create_directory_symlink(trap, bench.root);
  });
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(fs::exists(entry_path(moved, bench.digest)));
  CHECK(files_below(trap).empty());
  CHECK(bench.get() == bench.entry);
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
