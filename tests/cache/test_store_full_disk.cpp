// A store whose disk is full, in the seam and in earnest; and one whose disk cannot be written at all.
#include "../support/mount_namespace.hpp"
#include "../support/skip.hpp"
#include "store_bench.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

std::string mount_problem(const char* what) {
  return std::string(what) + " cannot be mounted: " + std::strerror(errno);
}

// Fills the disk below TMPDIR with entries, and sees the store through it. Empty, or what went wrong.
std::string fill_and_recover() {
  Bench bench;
  int stored = 0;
  while (stored < 100 && bench.put(Bench::numbered(stored, 3000)) == PutResult::stored) ++stored;
  if (stored < 3 || stored == 100) return "the disk was not filled: " + std::to_string(stored);
  if (bench.stats().write_failed != ErrorCounts{{ENOSPC, 1}})
    return "not ENOSPC: " + to_string(bench.stats());
  if (bench.stats().trimmed != 0) return "young entries were removed";
  if (files_below(bench.root).size() != static_cast<std::size_t>(stored)) return "a temporary file was left";
  if (bench.put(bench.entry) != PutResult::off) return "writing was not paused";
  for (int i = 0; i < stored; ++i)
    if (bench.get(Bench::numbered(i).key_text) != Bench::numbered(i, 3000)) return "an entry was lost";

  for (int i = 0; i < stored; ++i) set_age(bench.numbered_path(i), std::chrono::hours(stored - i));
  bench.clock.advance(std::chrono::seconds(61));
  if (bench.put(bench.entry) != PutResult::stored) return "no room was made: " + to_string(bench.stats());
  if (bench.get() != bench.entry) return "what was stored last is missing";
  if (bench.stats().trims != 1 || bench.stats().trimmed == 0) return "no trim: " + to_string(bench.stats());
  const auto left = bench.left_of(stored);
  if (left.empty() || left.front() != stored - static_cast<int>(left.size())) return "not the oldest went";
  std::string problem;
  bench.store->list([&](const ListedEntry& item) { problem += item.problem; });
  return problem;
}

void check_full_tmpfs(const char* options) {
  const TempDir temp;
  const NamespaceRun run = in_mount_namespace(
      [&]() -> std::string {
        if (::mount("none", temp.path().c_str(), "tmpfs", 0, options) != 0) return mount_problem("a tmpfs");
        ::setenv("TMPDIR", temp.path().c_str(), 1);
        return {};
      },
      fill_and_recover);
  if (!run.skipped.empty()) report_skip(run.skipped);
  CHECK(run.problem == "");
}

// What a store does in a place that was writable when it was filled, and no longer is.
std::string use_unwritable(const fs::path& root, const Entry& entry, int error) {
  std::vector<std::string> told;
  CacheOptions options;
  options.directory = at(root);
  options.events = [&](const Event& event) {
    if (event.level == EventLevel::warning) told.push_back(std::string(event.what));
  };
  Cache cache(std::move(options));
  for (int i = 0; i < 3; ++i) {
    const auto found = cache.get(entry.key_text);
    if (!found || found->entry != entry) return "no hit";
    cache.put(sample_entry("another"));
  }
  if (cache.state().status != DirectoryStatus::read_only) return "not said to be read-only";
  if (cache.lock_build(digest_of(entry.key_text), "a").outcome != LockOutcome::unavailable) return "locked";
  if (cache.trim({.max_bytes = 1}, TrimMode::remove).removed_entries != 0) return "trimmed";
  if (told.size() != 1) return "not one warning, but " + std::to_string(told.size());
  if (cache.stats().written != 0) return "written";
  const auto failed = cache.stats().write_failed;
  return failed.empty() || failed == ErrorCounts{{error, 1}} ? "" : to_string(cache.stats());
}

// False where the flag cannot be set.
bool set_immutable(const fs::path& path, bool on) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int flags = 0;
  const bool is_done = file >= 0 && ::ioctl(file, FS_IOC_GETFLAGS, &flags) == 0 &&
                       (flags = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL,
                        ::ioctl(file, FS_IOC_SETFLAGS, &flags) == 0);
  ::close(file);
  return is_done;
}

}  // namespace

TEST_SUITE_BEGIN("Store full disk");

TEST_CASE("F11: Disk full at any write, sync or close: one trim, one more try, then a pause [fault]") {
  struct Point {
    Call call;
    int nth;
  };
  std::vector<Point> points{{Call::sync, 1}, {Call::close, 1}};
  for (int nth = 1; nth <= 5; ++nth) points.push_back({Call::write, nth});
  for (const int error : {ENOSPC, EDQUOT}) {
    for (const auto& [call, nth] : points) {
      CAPTURE(error);
      CAPTURE(nth);
      Bench bench;
      bench.fill(10);
      bench.faulty.forget();
      bench.faulty.transfer_at_most(50);  // several writes
      const int before = open_descriptors();
      bench.faulty.fail(call, nth, error, 1000);
      CHECK(bench.put(bench.entry) == PutResult::failed);
      CHECK(open_descriptors() == before);
      CHECK(bench.stats().write_failed == ErrorCounts{{error, 1}});
      CHECK(bench.stats().trims == 1);
      CHECK(bench.left_of(10) == std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9});
      CHECK(files_below(bench.root).size() == 8);
      CHECK(bench.put(bench.entry) == PutResult::off);
      bench.clock.advance(WriteGate::k_full_disk_pause);
      bench.faulty.forget();
      CHECK(bench.put(bench.entry) == PutResult::stored);
      CHECK(bench.get() == bench.entry);
    }
  }
}

TEST_CASE("F11: A trim that makes room saves the put [fault]") {
  for (const int error : {ENOSPC, EDQUOT}) {
    Bench bench;
    bench.fill(10);
    bench.faulty.fail(Call::write, 1, error);
    CHECK(bench.put(bench.entry) == PutResult::stored);
    CHECK(bench.get() == bench.entry);
    CHECK(bench.stats().trimmed == 2);
    CHECK(bench.stats().write_failed.empty());
    CHECK_FALSE(bench.store->writes_closed());
    REQUIRE_FALSE(bench.told.empty());
    CHECK(bench.told[0].starts_with("cache.trimmed: the disk is full: "));
  }
}

TEST_CASE("F11: A disk that somebody else fills does not cost the whole cache [fault]") {
  Bench bench;
  bench.fill(10);
  bench.faulty.fail(Call::write, 1, ENOSPC, 1000);
  for (int minute = 0; minute < 5; ++minute) {
    CHECK(bench.put(bench.entry) == PutResult::failed);
    bench.clock.advance(WriteGate::k_full_disk_pause);
  }
  CHECK(bench.stats().trimmed == 2);
  bench.faulty.forget();
  CHECK(bench.put(bench.entry) == PutResult::stored);
  bench.faulty.fail(Call::write, 1, ENOSPC);
  CHECK(bench.put(bench.entry) == PutResult::stored);  // after a put that went well, room is made again
  CHECK(bench.stats().trimmed > 2);
}

TEST_CASE("F11: A full disk pauses writing for a minute [fault]") {
  for (const int error : {ENOSPC, EDQUOT}) {
    CAPTURE(error);
    Bench bench;
    bench.faulty.fail(Call::write, 1, error, 2);  // the second try as well
    CHECK(bench.put(bench.entry) == PutResult::failed);
    bench.clock.advance(std::chrono::seconds(59));
    bench.faulty.forget();
    CHECK(bench.put(bench.entry) == PutResult::off);
    CHECK(bench.faulty.calls().empty());
    CHECK(bench.stats().skipped == 1);
    CHECK(bench.store->writes_closed()->error == error);
    bench.clock.advance(std::chrono::seconds(1));
    CHECK(bench.put(bench.entry) == PutResult::stored);
    CHECK_FALSE(bench.store->writes_closed());
  }
}

TEST_CASE("A full disk does not shorten a stop for good") {
  WriteGate gate;
  const auto now = std::chrono::steady_clock::now();
  CHECK(gate.note_failure(ENOSPC, now));
  CHECK_FALSE(gate.note_failure(ENOSPC, now));
  CHECK(gate.note_failure(EROFS, now));
  CHECK_FALSE(gate.note_failure(ENOSPC, now));
  REQUIRE(gate.closed(now + std::chrono::hours(1)));
  CHECK(gate.closed(now)->error == EROFS);
}

TEST_CASE("F13: A real full disk is lived through [fault]") {
  check_full_tmpfs("size=64k,mode=0700");
}

TEST_CASE("F13: A real full inode table is lived through [fault]") {
  check_full_tmpfs("size=4m,nr_inodes=40,mode=0700");
}

TEST_CASE("F14: A real read-only mount serves hits, takes nothing, and warns once [fault]") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  set_age(bench.path(), std::chrono::hours(5));
  const char* const root = bench.root.c_str();
  const NamespaceRun run = in_mount_namespace(
      [&]() -> std::string {
        return ::mount(root, root, nullptr, MS_BIND, nullptr) != 0 ||
                       ::mount("none", root, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0
                   ? mount_problem("a read-only view")
                   : "";
      },
      [&] { return use_unwritable(bench.root, bench.entry, EROFS); });
  if (!run.skipped.empty()) report_skip(run.skipped);
  CHECK(run.problem == "");
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F14: An immutable directory serves hits, takes nothing, and warns once [fault]") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  // The shard as well: the flag is one of the directory alone.
  const std::vector<fs::path> places{bench.shard(), bench.root / "v1"};
  const bool is_set =
      std::ranges::all_of(places, [](const fs::path& place) { return set_immutable(place, true); });
  const std::string problem = is_set ? use_unwritable(bench.root, bench.entry, EPERM) : "";
  for (const fs::path& place : places) set_immutable(place, false);
  if (!is_set) report_skip("no directory can be made immutable here");
  CHECK(problem == "");
}

TEST_SUITE_END();
