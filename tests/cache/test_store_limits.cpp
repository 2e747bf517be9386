// How a store keeps to its limits by itself: when it looks, when it trims, and with whom it does not collide.
#include "store_bench.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
using std::chrono::hours;

namespace {

constexpr CacheLimits k_ten{.max_bytes = 0, .max_entries = 10};

// A store without faults, for threads and processes.
struct PlainStore {
  PlainStore(const fs::path& root, const CacheLimits& limits, FileSystem& fs = real_file_system())
      : directory(open_directory(fs, at(root))),
        store(CacheContext{fs, clock, counters, events}, std::move(directory.entries), StoreAccess::own,
              limits) {}

  Clock clock;
  CacheCounters counters;
  EventSink events;
  Directory directory;
  Store store;
};

// Files that look like entries to a trim, without waiting for the disk: number i is i + 1 hours old.
void make_files(const fs::path& root, int count) {
  fs::create_directories(root / "v1");
  for (unsigned shard = 0; shard < k_shard_count; ++shard)
    fs::create_directory(root / "v1" / shard_name(shard));
  for (const auto& item : fs::directory_iterator(root / "v1"))
    fs::permissions(item.path(), fs::perms::owner_all);
  for (const fs::path& path : {root, root / "v1"}) fs::permissions(path, fs::perms::owner_all);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  for (int i = 0; i < count; ++i) {
    const Digest digest{static_cast<std::uint64_t>(i) << 56, static_cast<std::uint64_t>(i)};
    const int file = ::open(entry_path(root, digest).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    const std::array<timespec, 2> times{timespec{now - (i + 1) * 3600L, 0},
                                        timespec{now - (i + 1) * 3600L, 0}};
    ::futimens(file, times.data());
    ::close(file);
  }
}

int count_of(const fs::path& root) {
  return static_cast<int>(files_below(root).size());
}

// Memory that children and their parent share.
template <class T>
class Shared {
 public:
  Shared() {
    void* const place = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(place != MAP_FAILED);
    value_ = ::new (place) T();
  }
  ~Shared() { ::munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return value_; }

 private:
  T* value_ = nullptr;
};

}  // namespace

TEST_SUITE_BEGIN("Store limits");

TEST_CASE("The first put of a store looks at the directory, the next ones do not") {
  Bench bench;
  bench.fill(3);
  bench.open();
  CHECK(bench.get(Bench::numbered(0).key_text));
  CHECK(bench.faulty.count(Call::list) == 0);  // a store that never puts never looks
  CHECK(bench.put(Bench::numbered(1)) == PutResult::stored);
  CHECK(bench.faulty.count(Call::list) == 3);
  CHECK(bench.put(Bench::numbered(2)) == PutResult::stored);
  CHECK(bench.faulty.count(Call::list) == 3);
  CHECK(bench.faulty.count(Call::lock) == 0);
  CHECK(bench.told.empty());
}

TEST_CASE("Without limits a put never looks") {
  Bench bench({0, 0});
  bench.fill(3);
  CHECK(bench.faulty.count(Call::list) == 0);
}

TEST_CASE("F36: A put that exceeds a limit trims, down to 80 %") {
  Bench bench;
  bench.fill(10);
  SUBCASE("entries") {
    bench.open(StoreAccess::own, k_ten);
  }
  SUBCASE("bytes") {
    struct ::stat stat {};
    REQUIRE(::stat(bench.numbered_path(0).c_str(), &stat) == 0);
    bench.open(StoreAccess::own, {.max_bytes = static_cast<std::uint64_t>(stat.st_blocks) * 512 * 10});
  }
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.get() == bench.entry);
  CHECK(bench.left_of(10) == std::vector<int>{3, 4, 5, 6, 7, 8, 9});
  CHECK(bench.stats().trims == 1);
  CHECK(bench.stats().trimmed == 3);
}

TEST_CASE("F36: A long run stays within its limit, whatever the order of use") {
  Bench bench(k_ten);
  for (int i = 0; i < 60; ++i) {
    REQUIRE(bench.put(Bench::numbered(i)) == PutResult::stored);
    set_age(bench.numbered_path(i), hours(100 - i));
    REQUIRE(count_of(bench.root) <= 11);
  }
  CHECK(count_of(bench.root) >= 8);
  CHECK_FALSE(bench.left_of(60).front() < 48);
  CHECK(bench.stats().trimmed == 60 - static_cast<std::uint64_t>(count_of(bench.root)));
}

TEST_CASE("Entries that are too young to go do not make each put look at the directory") {
  Bench bench({.max_bytes = 0, .max_entries = 320});
  make_files(bench.root, 320);
  for (const fs::path& path : files_below(bench.root)) set_age(path, std::chrono::seconds(1));
  CHECK(bench.put(bench.entry) == PutResult::stored);  // looks, is over the limit, and cannot trim
  CHECK(bench.stats().trims == 0);
  bench.faulty.forget();
  for (int i = 0; i < 5; ++i) CHECK(bench.put(Bench::numbered(i)) == PutResult::stored);
  CHECK(bench.faulty.count(Call::list) == 0);
  CHECK(bench.put(Bench::numbered(5)) == PutResult::stored);  // 1/64 of the limit later
  CHECK(bench.faulty.count(Call::list) > 0);
}

TEST_CASE("Another process that trims just now is left to it, and the put waits for its turn only so long") {
  Bench bench;
  bench.fill(11);
  const int locks = ::open((bench.root / "v1" / "locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(real_file_system().lock_byte(locks, k_trim_lock_byte) == 0);
  const TrimResult result = bench.store->trim(k_ten, TrimMode::remove);
  CHECK(result.left_to_another);
  CHECK(result.removed_entries == 0);
  CHECK(count_of(bench.root) == 11);
  CHECK_FALSE(bench.store->trim(k_ten, TrimMode::dry_run).left_to_another);
  bench.open(StoreAccess::own, k_ten);
  const auto start = bench.clock.steady();
  CHECK(bench.put(bench.entry) == PutResult::stored);
  CHECK(bench.clock.steady() - start >= std::chrono::milliseconds(250));
  CHECK(bench.clock.steady() - start < std::chrono::milliseconds(400));
  CHECK(count_of(bench.root) == 12);
  ::close(locks);
  CHECK(bench.put(Bench::numbered(50)) == PutResult::stored);
  CHECK(count_of(bench.root) <= 10);
}

TEST_CASE("F38: Entries that are removed behind its back do not upset the estimate") {
  Bench bench({.max_bytes = 0, .max_entries = 40});
  make_files(bench.root, 39);
  CHECK(bench.put(bench.entry) == PutResult::stored);  // 40: at the limit
  for (unsigned shard = 0; shard < k_shard_count; ++shard)
    for (const auto& item : fs::directory_iterator(bench.root / "v1" / shard_name(shard))) fs::remove(item);
  // It believes in 41, looks, and finds one.
  CHECK(bench.put(Bench::numbered(0)) == PutResult::stored);
  CHECK(bench.stats().trimmed == 0);
  CHECK(bench.stats().trim_failed.empty());
  // From there it counts anew: trimming fires when there are too many, not before.
  for (int i = 1; i < 40; ++i) {
    REQUIRE(bench.put(Bench::numbered(i)) == PutResult::stored);
    set_age(bench.numbered_path(i), hours(200 - i));
  }
  CHECK(bench.stats().trimmed == 0);
  CHECK(bench.put(Bench::numbered(40)) == PutResult::stored);
  CHECK(bench.stats().trimmed == 9);
  CHECK(count_of(bench.root) == 32);
}

TEST_CASE("F38: Entries that others put are seen before the limit is far behind") {
  Bench bench({.max_bytes = 0, .max_entries = 320});
  CHECK(bench.put(bench.entry) == PutResult::stored);
  make_files(bench.root, 350);
  int puts = 0;
  while (bench.stats().trimmed == 0 && puts < 100)
    REQUIRE(bench.put(Bench::numbered(puts++)) == PutResult::stored);
  CHECK(puts <= 21);  // 1/16 of the limit
  CHECK(count_of(bench.root) <= 320);
}

TEST_CASE("F38: A cleared store counts from nothing") {
  Bench bench(k_ten);
  bench.fill(10);
  bench.store->clear();
  bench.fill(10);
  CHECK(bench.stats().trimmed == 0);
  CHECK(bench.left_of(10).size() == 10);
}

TEST_CASE("F37: Threads that put, read and trim at once lose nothing but what is trimmed [tsan]") {
  const TempDir temp;
  PlainStore own(temp / "cache", {.max_bytes = 0, .max_entries = 40});
  constexpr int k_threads = 4, k_each = 40;
  std::atomic<int> wrong = 0;
  std::latch start(k_threads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < k_threads; ++thread) {
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      for (int i = 0; i < k_each; ++i) {
        const Entry entry = Bench::numbered(thread * k_each + i);
        const Digest digest = digest_of(entry.key_text);
        if (own.store.put(entry, digest) != PutResult::stored) ++wrong;
        std::error_code ignored;  // made old, so that it can be trimmed
        fs::last_write_time(entry_path(temp / "cache", digest),
                            fs::file_time_type::clock::now() - hours(200 - i), ignored);
        const Entry earlier = Bench::numbered((thread * k_each + i * 7) % (k_threads * k_each));
        const auto got = own.store.get(earlier.key_text, digest_of(earlier.key_text));
        if (got && *got != earlier) ++wrong;
        if (i % 10 == 9) own.store.trim({.max_bytes = 0, .max_entries = 30}, TrimMode::remove);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  own.store.trim({.max_bytes = 0, .max_entries = 40}, TrimMode::remove);
  const CacheStats stats = own.counters.snapshot();
  CHECK(wrong == 0);
  CHECK(stats.trim_failed.empty());
  CHECK(stats.corrupt == 0);
  CHECK(stats.written == k_threads * k_each);
  CHECK(static_cast<int>(stats.written - stats.trimmed) == count_of(temp / "cache"));
  CHECK(count_of(temp / "cache") <= 40);
}

TEST_CASE("F37: Processes that trim at once remove each entry once, with and without locks [fault]") {
  for (const bool with_locks : {true, false}) {
    CAPTURE(with_locks);
    constexpr int k_files = 2000, k_processes = 4;
    const TempDir temp;
    make_files(temp.path() / "cache", k_files);
    struct Result {
      std::atomic<int> ready = 0, removed = 0, failed = 0, passes = 0;
    };
    const Shared<Result> all;
    std::vector<pid_t> children;
    for (int i = 0; i < k_processes; ++i) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        ::alarm(60);
        FaultyFileSystem faulty;
        if (!with_locks) faulty.fail(Call::lock, 1, ENOLCK, 1000);
        PlainStore own(temp / "cache", {}, faulty);
        ++all->ready;
        while (all->ready < k_processes) ::sched_yield();
        const TrimResult result = own.store.trim({.max_bytes = 0, .max_entries = 1000}, TrimMode::remove);
        all->removed += static_cast<int>(result.removed_entries);
        all->failed += static_cast<int>(result.failed);
        if (!result.left_to_another) ++all->passes;
        ::_exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      CHECK(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
    }
    CHECK(all->failed == 0);
    CHECK(all->removed == k_files - count_of(temp / "cache"));
    CHECK(count_of(temp / "cache") <= 800);
    if (with_locks) CHECK(count_of(temp / "cache") == 800);
    if (!with_locks) CHECK(all->passes == k_processes);
  }
}

TEST_CASE("F36: A hundred thousand entries are trimmed in seconds and little memory [nosan]") {
  // In memory where that can be had: removing the rest from a disk would take most of the time.
  const fs::path shm = "/dev/shm";
  const TempDir temp(::access(shm.c_str(), W_OK) == 0 ? shm : fs::temp_directory_path());
  const fs::path root = temp.path() / "cache";
  make_files(root, static_cast<int>(k_shard_count));  // one a shard, of 256 ages
  constexpr int k_files = 100'000;
  for (int i = static_cast<int>(k_shard_count); i < k_files; ++i) {
    const std::uint64_t shard = static_cast<std::uint64_t>(i) % k_shard_count;
    const fs::path first = entry_path(root, {shard << 56, shard});
    const fs::path link = entry_path(root, {shard << 56, static_cast<std::uint64_t>(i)});
    REQUIRE(::link(first.c_str(), link.c_str()) == 0);  // cheaper than a file
  }
  const int result = in_child([&] {
    PlainStore own(root, {});
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    const auto start = std::chrono::steady_clock::now();
    const TrimResult trimmed = own.store.trim(CacheLimits{}, TrimMode::remove);
    const auto took = std::chrono::steady_clock::now() - start;
    ::getrusage(RUSAGE_SELF, &after);
    if (trimmed.entries != k_files || k_files - trimmed.removed_entries != 52'428) return 1;
    if (took > std::chrono::seconds(8)) return 2;
    return after.ru_maxrss - before.ru_maxrss < 16 * 1024 ? 0 : 3;
  });
  CHECK(result == 0);
  CHECK(count_of(root) == 52'428);
  CHECK(count_of(root / "v1" / shard_name(0)) == 391);  // the youngest
  CHECK(count_of(root / "v1" / shard_name(255)) == 0);
}

// The allocators of GCC's sanitizers take no lock at a fork: a child of theirs that allocates may wait for
// ever.
TEST_CASE("A store goes on in children that are forked while threads use it [nosan]") {
  const TempDir temp;
  PlainStore own(temp / "cache", {.max_bytes = 0, .max_entries = 20});
  const Entry damaged = sample_entry("damaged");
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; !stop; ++i) {
        const Entry entry = Bench::numbered(thread * 10 + i % 10);
        own.store.put(entry, digest_of(entry.key_text));
        own.store.get(entry.key_text, digest_of(entry.key_text));
        own.store.trim({.max_bytes = 0, .max_entries = 10}, TrimMode::remove);
      }
    });
  }
  for (int round = 0; round < 10; ++round) {
    CHECK(in_child([&] {
            ::alarm(20);
            const Entry entry = sample_entry("child");
            const Digest digest = digest_of(entry.key_text);
            const bool is_stored = own.store.put(entry, digest) == PutResult::stored;
            const bool is_there = own.store.get(entry.key_text, digest).has_value();
            own.store.trim({.max_bytes = 0, .max_entries = 10}, TrimMode::remove);
            return is_stored && is_there ? 0 : 1;
          }) == 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_SUITE_END();
