// A store on a file system that fails: at every call, for every reason.
#include "store_bench.hpp"

#include <sys/resource.h>

#include <algorithm>

using namespace jitsmith;
using namespace jitsmith::test;

TEST_SUITE_BEGIN("Store faults");

TEST_CASE("F18: Any read trouble is a miss that names its cause, and removes nothing [fault]") {
  for (const int error : {EIO, ESTALE, EMFILE, ENFILE, EACCES, ENOMEM}) {
    for (const Call call : {Call::open, Call::stat, Call::read}) {
      for (int nth = 1; nth <= (call == Call::read ? 1 : 2); ++nth) {
        CAPTURE(error);
        CAPTURE(nth);
        Bench bench;
        REQUIRE(bench.put(bench.entry) == PutResult::stored);
        bench.faulty.forget();
        bench.faulty.fail(call, nth, error);
        const int before = open_descriptors();
        CHECK_FALSE(bench.get());
        CHECK(open_descriptors() == before);
        CHECK(bench.stats().read_failed == ErrorCounts{{error, 1}});
        CHECK(bench.faulty.count(Call::unlink) == 0);
        CHECK(bench.get() == bench.entry);
      }
    }
  }
}

TEST_CASE("F18: An entry that vanishes before, or shrinks after, it is opened is a miss [fault]") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  SUBCASE("vanishes before it is opened") {
    bench.faulty.before_next(Call::open, [&] { fs::remove(bench.path()); });
    CHECK_FALSE(bench.get());
    CHECK(bench.stats().read_failed.empty());
  }
  SUBCASE("vanishes while it is open") {
    bench.faulty.before_next(Call::read, [&] { fs::remove(bench.path()); });
    CHECK(bench.get() == bench.entry);
  }
  SUBCASE("shrinks before it is read") {
    bench.faulty.before_next(Call::read, [&] { fs::resize_file(bench.path(), 70); });
    CHECK_FALSE(bench.get());
    CHECK(bench.stats().corrupt == 1);
  }
}

TEST_CASE("F12: Short transfers and interruptions change nothing [fault]") {
  Bench bench;
  bench.faulty.transfer_at_most(7);
  for (const Call call : {Call::open, Call::write, Call::sync, Call::close, Call::read}) {
    bench.faulty.fail(call, 1, EINTR, 3);
  }
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
  CHECK(bench.faulty.count(Call::write) > 10);
  CHECK(bench.faulty.count(Call::read) > 10);
}

TEST_CASE("F12: A write that makes no progress fails instead of spinning [fault]") {
  Bench bench;
  bench.faulty.transfer_at_most(0);
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK(bench.stats().write_failed == ErrorCounts{{EIO, 1}});
}

namespace {

// The nth call of this kind in a publish fails: the put fails, and leaves nothing but its cause.
void check_failed_publish(Call call, int nth, int error, bool is_first_in_shard) {
  CAPTURE(error);
  CAPTURE(nth);
  Bench bench;
  bench.faulty.transfer_at_most(50);  // several writes
  if (!is_first_in_shard) fs::create_directory(bench.shard());
  if (!is_first_in_shard) ::chmod(bench.shard().c_str(), 0700);
  const int before = open_descriptors();
  bench.faulty.fail(call, nth, error);
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK(files_below(bench.root).empty());
  CHECK(open_descriptors() == before);
  CHECK(bench.stats().write_failed == ErrorCounts{{error, 1}});
  CHECK_FALSE(bench.get());
  CHECK(bench.told.size() == 1);
}

}  // namespace

TEST_CASE("F12: Any failing call of a publish leaves no file, no descriptor, and its errno [fault]") {
  for (const int error : {EIO, EFBIG, EMFILE, ENFILE, ESTALE, EBUSY, EROFS, EACCES, EPERM}) {
    for (const bool is_first_in_shard : {true, false}) {
      // The third open is that of the temporary file, when the shard has to be made; then it is the second.
      check_failed_publish(Call::open, is_first_in_shard ? 3 : 2, error, is_first_in_shard);
      check_failed_publish(Call::change_mode, is_first_in_shard ? 2 : 1, error, is_first_in_shard);
      for (const int nth : {1, 3, 5}) check_failed_publish(Call::write, nth, error, is_first_in_shard);
      for (const Call call : {Call::sync, Call::close})
        check_failed_publish(call, 1, error, is_first_in_shard);
    }
  }
}

TEST_CASE("F16: A rename that fails leaves no file, no descriptor, and its errno [fault]") {
  for (const int error : {EXDEV, EBUSY, EACCES, EIO, ESTALE, EPERM}) {
    for (const bool is_first_in_shard : {true, false})
      check_failed_publish(Call::rename, 1, error, is_first_in_shard);
  }
}

TEST_CASE("The nth call of a publish fails, for every n: old or new state, never between [fault]") {
  int failures = 0;
  for (int nth = 1; nth < 40; ++nth) {
    CAPTURE(nth);
    Bench bench;
    Entry newer = bench.entry;
    newer.facts = "other facts";
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    bench.faulty.forget();
    bench.faulty.fail(Call::any, nth, EIO);
    const bool stored = bench.put(newer) == PutResult::stored;
    bench.faulty.forget();
    CHECK(bench.get() == (stored ? newer : bench.entry));
    CHECK(files_below(bench.root).size() == 1);
    if (!stored) ++failures;
  }
  CHECK(failures >= 8);
}

TEST_CASE(
    "When even the cleaning up fails the put still only fails, and the leftover harms nothing [fault]") {
  Bench bench;
  bench.faulty.fail(Call::rename, 1, EBUSY);
  bench.faulty.fail(Call::unlink, 1, EBUSY);
  CHECK(bench.put(bench.entry) == PutResult::failed);
  const auto files = files_below(bench.root);
  REQUIRE(files.size() == 1);
  CHECK(is_temporary_name(files[0].filename().string()));
  CHECK_FALSE(bench.get());
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F14: A forbidden or read-only place stops writing for good, and goes on being read [fault]") {
  for (const int error : {EROFS, EACCES, EPERM}) {
    CAPTURE(error);
    Bench bench;
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    bench.faulty.fail(Call::rename, 1, error);
    CHECK(bench.put(bench.entry) == PutResult::failed);
    bench.clock.advance(std::chrono::hours(1000));
    CHECK(bench.put(bench.entry) == PutResult::off);
    CHECK(bench.put(bench.entry) == PutResult::off);
    CHECK(bench.get() == bench.entry);
    CHECK(bench.told.size() == 1);  // one warning, not one a put
  }
}

TEST_CASE("Other failures do not stop the next write [fault]") {
  for (const int error : {EIO, ESTALE, EMFILE, ENFILE, EFBIG, EXDEV, EBUSY}) {
    CAPTURE(error);
    Bench bench;
    bench.faulty.fail(Call::rename, 1, error);
    CHECK(bench.put(bench.entry) == PutResult::failed);
    CHECK(bench.put(bench.entry) == PutResult::stored);
  }
}

TEST_CASE("F12: The file size limit is respected, so that no signal is raised [fault]") {
  SUBCASE("as the file system reports it") {
    Bench bench;
    bench.faulty.limit_file_size(encode(bench.entry).size() - 1);
    CHECK(bench.put(bench.entry) == PutResult::failed);
    CHECK(bench.stats().write_failed == ErrorCounts{{EFBIG, 1}});
    CHECK(files_below(bench.root).empty());
    bench.faulty.limit_file_size(encode(bench.entry).size());
    CHECK(bench.put(bench.entry) == PutResult::stored);
  }
  SUBCASE("in earnest") {
    CHECK(in_child([] {
            Bench bench;
            rlimit normal{};
            ::getrlimit(RLIMIT_FSIZE, &normal);
            const rlimit tiny{100, normal.rlim_max};
            if (::setrlimit(RLIMIT_FSIZE, &tiny) != 0) return 2;
            const PutResult result = bench.put(bench.entry);
            ::setrlimit(RLIMIT_FSIZE, &normal);  // or a sanitizer that flushes output at exit is killed
            return result == PutResult::failed && bench.stats().write_failed.count(EFBIG) == 1 ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("F15: Without free descriptors it is a miss and a failed put, and then works again [fault]") {
  CHECK(in_child([] {
          Bench bench;
          if (bench.put(bench.entry) != PutResult::stored) return 2;
          rlimit normal{};
          ::getrlimit(RLIMIT_NOFILE, &normal);
          const rlimit none{0, normal.rlim_max};
          if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 3;
          const bool missed = !bench.get() && bench.put(bench.entry) == PutResult::failed;
          ::setrlimit(RLIMIT_NOFILE, &normal);
          const bool named =
              bench.stats().read_failed.count(EMFILE) == 1 && bench.stats().write_failed.count(EMFILE) == 1;
          return missed && named && bench.get() == bench.entry ? 0 : 1;
        }) == 0);
}

TEST_CASE("F15: Without free descriptors in the whole system it is the same [fault]") {
  for (const int error : {EMFILE, ENFILE}) {
    CAPTURE(error);
    Bench bench;
    REQUIRE(bench.put(bench.entry) == PutResult::stored);
    bench.faulty.fail(Call::open, 1, error, 1000);
    CHECK_FALSE(bench.get());
    CHECK(bench.put(bench.entry) == PutResult::failed);
    CHECK(bench.store->lock_build(bench.digest, "a", {}).outcome == LockOutcome::unavailable);
    CHECK(bench.store->trim({}, TrimMode::remove).removed_entries == 0);
    CHECK(bench.stats().read_failed == ErrorCounts{{error, 1}});
    CHECK(bench.stats().write_failed == ErrorCounts{{error, 1}});
    CHECK(bench.stats().lock_failed == ErrorCounts{{error, 2}});
    bench.faulty.forget();
    CHECK(bench.put(bench.entry) == PutResult::stored);
    CHECK(bench.get() == bench.entry);
  }
}

TEST_CASE("F16: A shard that is removed under a publish is made again, once [fault]") {
  Bench bench;
  bench.faulty.before_next(Call::rename, [&] { fs::remove_all(bench.shard()); });
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
  bench.faulty.fail(Call::rename, 1, ENOENT, 2);
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK(bench.stats().write_failed == ErrorCounts{{ENOENT, 1}});
  CHECK(files_below(bench.root).size() == 1);
}

TEST_CASE("The whole cache is removed under us: misses and failed puts, no more") {
  Bench bench;
  fs::remove_all(bench.root);
  CHECK(bench.put(bench.entry) == PutResult::failed);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().write_failed == ErrorCounts{{ENOENT, 1}});
}

TEST_CASE("F17: What was published is never looked at again, though it seem to be missing [fault]") {
  Bench bench;
  bench.seed();
  bench.faulty.before_next(Call::rename, [&] {
    bench.faulty.forget();
    bench.faulty.fail(Call::any, 3, ENOENT, 1000);  // all that comes after the rename and the close
  });
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.faulty.calls() == std::vector<Call>{Call::close});  // the folder
  CHECK(bench.stats().written == 2);                              // with that of the seed
  CHECK(bench.stats().write_failed.empty());
  CHECK_FALSE(bench.get());  // a miss as any other
  bench.faulty.forget();
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F17: The scan of a first put is not put off by an entry that seems to be missing [fault]") {
  Bench bench;
  bench.faulty.fail(Call::stat_at, 1, ENOENT, 1000);
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.stats().trim_failed.empty());
  CHECK(bench.told.empty());
}

TEST_CASE("The data is on the disk before the name is") {
  Bench bench;
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  bench.faulty.forget();
  REQUIRE(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.faulty.calls() == std::vector<Call>{Call::open, Call::stat, Call::open, Call::change_mode,
                                                  Call::write, Call::sync, Call::close, Call::rename,
                                                  Call::close});
}

TEST_SUITE_END();
