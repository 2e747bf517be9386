#include "store_bench.hpp"

#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds k_wait{30'000};

// A store as another process has it, on the same directory.
struct Neighbour {
  explicit Neighbour(const Bench& bench)
      : directory(open_directory(real_file_system(), at(bench.root))),
        store(CacheContext{real_file_system(), clock, counters, events}, std::move(directory.entries)) {}

  Clock clock;
  CacheCounters counters;
  EventSink events;
  Directory directory;
  Store store;
};

std::vector<std::string> names_of(const std::vector<std::string>& told) {
  std::vector<std::string> names;
  for (const auto& text : told) names.push_back(text.substr(0, text.find(':')));
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("BuildLock");

TEST_CASE("A free lock is held at once, and leaves an empty private file") {
  Bench bench;
  const int before = open_descriptors();
  {
    const BuildLock lock = bench.store->lock_build(bench.digest, "a", k_wait);
    CHECK(lock.outcome == LockOutcome::held);
    CHECK(open_descriptors() == before + 1);
    CHECK((::fcntl(lock.file.get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(open_descriptors() == before);
  CHECK(mode_of(bench.root / "v1" / "locks") == 0600u);
  CHECK(fs::file_size(bench.root / "v1" / "locks") == 0);
  CHECK(bench.stats().lock_waits == 0);
  CHECK(bench.told.empty());
}

TEST_CASE("F34: The file of locks has exactly its mode, whatever the umask") {
  for (const mode_t mask : {0000, 0022, 0077, 0377}) {
    CAPTURE(mask);
    Bench bench;
    const mode_t saved = ::umask(mask);
    CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::held);
    ::umask(saved);
    CHECK(mode_of(bench.root / "v1" / "locks") == 0600u);
    CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::held);
  }
}

TEST_CASE("Each key has a lock of its own, and trimming another") {
  Bench bench;
  const BuildLock one = bench.store->lock_build({1, 2}, "a", {});
  CHECK(one.outcome == LockOutcome::held);
  CHECK(bench.store->lock_build({1, 3}, "b", {}).outcome == LockOutcome::held);
  CHECK(bench.store->lock_build({7, 2}, "c", {}).outcome == LockOutcome::timed_out);  // the same byte
  CHECK_FALSE(bench.store->trim({}, TrimMode::remove).left_to_another);
  CHECK(build_lock_byte({0, ~std::uint64_t{0}}) == k_trim_lock_byte - 1);
}

TEST_CASE("A lock that stays taken is given up after the longest wait, and people are told") {
  Bench bench;
  Neighbour other(bench);
  const BuildLock theirs = other.store.lock_build(bench.digest, "theirs", k_wait);
  REQUIRE(theirs.outcome == LockOutcome::held);
  const auto start = bench.clock.steady();
  const BuildLock lock = bench.store->lock_build(bench.digest, "kernel scale", k_wait);
  const auto waited = bench.clock.steady() - start;
  CHECK(lock.outcome == LockOutcome::timed_out);
  CHECK_FALSE(lock.file.is_open());
  CHECK(waited >= k_wait);
  CHECK(waited < k_wait + milliseconds(1));  // the last pause is as short as need be
  CHECK(bench.stats().lock_waits == 1);
  CHECK(bench.stats().lock_timeouts == 1);
  CHECK(bench.stats().lock_failed.empty());
  CHECK(names_of(bench.told) == std::vector<std::string>{"cache.wait", "cache.lock_timeout"});
  for (const auto& text : bench.told) CHECK(text.find("kernel scale") != std::string::npos);
  CHECK(bench.told[0].find("waited for 1.0 s") != std::string::npos);
  CHECK(bench.told[1].find("for 30.0 s") != std::string::npos);
  // From 1 ms it backs off to 50 ms, each cut by up to a half.
  CHECK(bench.faulty.count(Call::lock) > 600);
  CHECK(bench.faulty.count(Call::lock) < 1250);
}

TEST_CASE("A short wait is no news, and no wait at all is one try") {
  Bench bench;
  Neighbour other(bench);
  const BuildLock theirs = other.store.lock_build(bench.digest, "theirs", k_wait);
  CHECK(bench.store->lock_build(bench.digest, "a", milliseconds(900)).outcome == LockOutcome::timed_out);
  CHECK(names_of(bench.told) == std::vector<std::string>{"cache.lock_timeout"});
  bench.faulty.forget();
  for (const milliseconds none : {milliseconds(0), milliseconds(-5), milliseconds::min()})
    CHECK(bench.store->lock_build(bench.digest, "a", none).outcome == LockOutcome::timed_out);
  CHECK(bench.faulty.count(Call::lock) == 3);
}

TEST_CASE("A lock that is let go is taken over, and the waiter knows that it waited") {
  Bench bench;
  Neighbour other(bench);
  BuildLock theirs = other.store.lock_build(bench.digest, "theirs", k_wait);
  for (int i = 0; i < 3; ++i) bench.faulty.before_next(Call::lock, [] {});
  bench.faulty.before_next(Call::lock, [&] { theirs.file.close(); });
  const BuildLock lock = bench.store->lock_build(bench.digest, "a", milliseconds::max());
  CHECK(lock.outcome == LockOutcome::held);
  CHECK(bench.stats().lock_waits == 1);
  CHECK(bench.faulty.count(Call::lock) == 4);
  CHECK(bench.told.empty());
}

TEST_CASE("F24: Without working locks it is unavailable at once, under its cause [fault]") {
  for (const int error : {ENOLCK, EOPNOTSUPP, EINVAL, EIO, ESTALE}) {
    CAPTURE(error);
    Bench bench;
    bench.faulty.fail(Call::lock, 1, error);
    const int before = open_descriptors();
    CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::unavailable);
    CHECK(open_descriptors() == before);
    CHECK(bench.stats().lock_failed == ErrorCounts{{error, 1}});
    CHECK(bench.told.empty());
    CHECK(bench.put(bench.entry) == PutResult::stored);
  }
}

TEST_CASE("F24: Any failing call of locking is no lock, no descriptor and no exception [fault]") {
  for (const bool is_new : {true, false}) {
    for (int nth = 1; nth < 8; ++nth) {
      CAPTURE(nth);
      Bench bench;
      if (!is_new) bench.store->lock_build(bench.digest, "a", k_wait);
      bench.faulty.forget();
      bench.faulty.fail(Call::any, nth, ESTALE);
      const int before = open_descriptors();
      const bool is_held = bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::held;
      CHECK(open_descriptors() == before);
      CHECK(is_held == bench.stats().lock_failed.empty());
    }
  }
}

TEST_CASE("F32: A planted file of locks is not opened, not waited for, and not removed") {
  Bench bench;
  const fs::path locks = bench.root / "v1" / "locks", outside = bench.temp.path() / "outside";
  write_bytes(outside, {});
  SUBCASE("symbolic link") {
    fs::create_symlink(outside, locks);
  }
  SUBCASE("dangling symbolic link") {
    fs::create_symlink(bench.temp.path() / "nothing", locks);
  }
  SUBCASE("FIFO") {
    REQUIRE(::mkfifo(locks.c_str(), 0600) == 0);
  }
  SUBCASE("directory") {
    fs::create_directory(locks);
  }
  SUBCASE("writable by all") {
    write_bytes(locks, {});
    REQUIRE(::chmod(locks.c_str(), 0666) == 0);
  }
  CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::unavailable);
  CHECK(bench.stats().refused + bench.stats().lock_failed.size() == 1);
  CHECK(fs::symlink_status(locks).type() != fs::file_type::not_found);
  CHECK_FALSE(fs::exists(bench.temp.path() / "nothing"));
  CHECK(bench.put(bench.entry) == PutResult::stored);
}

TEST_CASE("Where nothing can be stored there is no lock, and no noise [fault]") {
  Bench bench;
  const auto tried = [&] { return bench.store->lock_build(bench.digest, "a", k_wait).outcome; };
  SUBCASE("read-only for good") {
    bench.store->close_writes(EROFS);
    CHECK(tried() == LockOutcome::unavailable);
  }
  SUBCASE("a bundle") {
    bench.open(StoreAccess::read_only);
    CHECK(tried() == LockOutcome::unavailable);
  }
  SUBCASE("a full disk, for as long as that keeps from writing") {
    bench.store->close_writes(ENOSPC);
    CHECK(tried() == LockOutcome::unavailable);
    CHECK(bench.faulty.calls().empty());
    bench.clock.advance(WriteGate::k_full_disk_pause);
    CHECK(tried() == LockOutcome::held);
    return;
  }
  CHECK(bench.faulty.calls().empty());
  CHECK(bench.stats().lock_failed.empty());
  CHECK(bench.told.empty());
}

TEST_CASE("A wait ends when the directory is removed [fault]") {
  Bench bench;
  Neighbour other(bench);
  const BuildLock theirs = other.store.lock_build(bench.digest, "theirs", k_wait);
  for (int i = 0; i < 5; ++i) bench.faulty.before_next(Call::lock, [] {});
  bench.faulty.before_next(Call::lock, [&] { fs::remove_all(bench.root); });
  const auto start = bench.clock.steady();
  const BuildLock lock = bench.store->lock_build(bench.digest, "a", k_wait);
  CHECK(lock.outcome == LockOutcome::unavailable);
  CHECK(bench.clock.steady() - start < seconds(1));
  CHECK(bench.stats().lock_failed == ErrorCounts{{ENOENT, 1}});
  // And from then on there is nothing to wait for.
  CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::unavailable);
}

TEST_CASE("Threads of one process exclude each other [tsan]") {
  const Bench bench;
  Neighbour shared(bench);
  std::atomic<int> inside = 0, most = 0, held = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        const BuildLock lock = shared.store.lock_build(bench.digest, "a", k_wait);
        if (lock.outcome != LockOutcome::held) continue;
        ++held;
        if (++inside > 1) ++most;
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(held == 40);
  CHECK(most == 0);
}

TEST_CASE("A holder that is killed lets go at once, a stopped one is waited for no longer than agreed") {
  Bench bench;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Neighbour own(bench);
    const BuildLock lock = own.store.lock_build(bench.digest, "a", k_wait);
    const char is_held = lock.outcome == LockOutcome::held ? 'y' : 'n';
    if (::write(ends[1], &is_held, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char is_held = 'n';
  REQUIRE(::read(ends[0], &is_held, 1) == 1);
  CHECK(is_held == 'y');
  ::kill(child, SIGSTOP);
  CHECK(bench.store->lock_build(bench.digest, "a", k_wait).outcome == LockOutcome::timed_out);
  ::kill(child, SIGKILL);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(bench.store->lock_build(bench.digest, "a", {}).outcome == LockOutcome::held);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_SUITE_END();
