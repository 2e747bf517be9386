// Entries, shards and directories that somebody else planted or may write.
#include "store_bench.hpp"

#include "../support/skip.hpp"

#include <sys/sysmacros.h>

using namespace jitsmith;
using namespace jitsmith::test;

TEST_SUITE_BEGIN("Store trust");

TEST_CASE("F34: Files and folders have exactly their modes, whatever the umask") {
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

TEST_CASE("F32: Planted entries are refused: no wait, no read, no removal") {
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
      report_skip("needs root for a part");
      return;
    }
    swap_for([&] {
      REQUIRE(::chown(outside.c_str(), k_other_user, k_other_user) == 0);
      fs::create_hard_link(outside, bench.path());
    });
  }
  SUBCASE("device") {
    if (!is_root()) {
      report_skip("needs root for a part");
      return;
    }
    fs::remove(bench.path());
    if (::mknod(bench.path().c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) {  // /dev/zero
      report_skip("devices cannot be made here");
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

TEST_CASE("F32: A socket in the place of an entry is a miss") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  fs::remove(bench.path());
  if (::mknod(bench.path().c_str(), S_IFSOCK | 0600, 0) != 0) return;
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().read_failed.at(ENXIO) == 1);
}

TEST_CASE("F31: A shard that is not ours is neither read nor written") {
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
      report_skip("needs root for a part");
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

TEST_CASE("F33: A directory that is swapped after it was opened stays the opened one") {
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

TEST_SUITE_END();
