#include "../support/faulty_file_system.hpp"
#include "../support/temp_dir.hpp"
#include "samples.hpp"

#include <jitsmith/cache/cache.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <new>
#include <stdexcept>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

struct Told {
  std::vector<std::string> names;
  std::vector<EventLevel> levels;

  EventSink sink() {
    return [this](const Event& event) {
      if (event.level == EventLevel::debug) return;
      names.emplace_back(event.what);
      levels.push_back(event.level);
    };
  }
};

CacheOptions in(const fs::path& root, EventSink events = {}, FileSystem* file_system = nullptr) {
  return {.directory = at(root), .events = std::move(events), .file_system = file_system};
}

std::optional<Entry> entry_in(std::optional<Found> found) {
  if (!found) return std::nullopt;
  return std::move(found->entry);
}

// The key's number decides the payload, so that a reader can tell a wrong one.
Entry numbered_entry(int number) {
  Entry entry = sample_entry(fmt::format("number={}\n", number));
  entry.payload = elf_payload(20000 + static_cast<std::size_t>(number), static_cast<unsigned char>(number));
  return entry;
}

// Puts and gets a few keys many times; the number of answers that were wrong.
int hammer(Cache& cache, int rounds) {
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const Entry entry = numbered_entry(round % 3);
    if (round % 2 == 0 && cache.put(entry) != PutResult::stored) ++wrong;
    const auto got = cache.get(entry.key_text);
    if (got && got->entry != entry) ++wrong;
    if (round >= 3 && !got) ++wrong;  // once published, an entry never disappears while it is replaced
  }
  return wrong;
}

}  // namespace

TEST_SUITE_BEGIN("Cache");

TEST_CASE("Keeps entries for the next run") {
  const TempDir temp;
  const Entry entry = sample_entry();
  {
    Cache cache(in(temp / "cache"));
    CHECK(cache.state().status == DirectoryStatus::usable);
    CHECK_FALSE(cache.get(entry.key_text));
    CHECK(cache.put(entry) == PutResult::stored);
  }
  Cache cache(in(temp / "cache"));
  CHECK(entry_in(cache.get(entry.key_text)) == entry);
  CHECK(cache.stats().hits == 1);
  CHECK(cache.stats().misses == 0);
}

TEST_CASE("F6: A forced collision is a miss for the other key") {
  const TempDir temp;
  Cache cache(in(temp / "cache"));
  const Entry entry = sample_entry();
  REQUIRE(cache.put(entry) == PutResult::stored);
  CHECK_FALSE(cache.get("another key", digest_of(entry.key_text)));
  CHECK(cache.stats().mismatched == 1);
  CHECK(entry_in(cache.get(entry.key_text)) == entry);
}

TEST_CASE("Without a directory it works, finds nothing, and says why once") {
  const TempDir temp;
  REQUIRE(::chmod(temp.path().c_str(), 0777) == 0);
  Told told;
  Cache cache(in(temp.path(), told.sink()));
  CHECK(cache.put(sample_entry()) == PutResult::off);
  CHECK_FALSE(cache.get(sample_entry().key_text));
  CHECK(cache.remove(digest_of(sample_entry().key_text)));
  cache.list([](const ListedEntry&) { FAIL("nothing to list"); });
  CHECK(cache.clear().files == 0);
  CHECK(cache.state().status == DirectoryStatus::off);
  CHECK_FALSE(cache.state().reason.empty());
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().skipped == 1);
  CHECK(told.names == std::vector<std::string>{"cache.off"});
  CHECK(told.levels == std::vector<EventLevel>{EventLevel::warning});
  CHECK(fs::is_empty(temp.path()));
}

TEST_CASE("Turned off on purpose, it does not warn") {
  Told told;
  CacheOptions options;
  options.directory.enabled = false;
  options.events = told.sink();
  const Cache cache(std::move(options));
  CHECK(cache.state().status == DirectoryStatus::off);
  CHECK(told.levels == std::vector<EventLevel>{EventLevel::info});
}

TEST_CASE("F14: A read-only directory serves hits, takes nothing, and warns once [fault]") {
  const TempDir temp;
  const Entry entry = sample_entry(), damaged = sample_entry("damaged");
  {
    Cache cache(in(temp / "cache"));
    REQUIRE(cache.put(entry) == PutResult::stored);
    REQUIRE(cache.put(damaged) == PutResult::stored);
  }
  write_bytes(entry_path(temp / "cache", digest_of(damaged.key_text)), {});
  FaultyFileSystem faulty;
  for (const Call call : {Call::check_writable, Call::unlink, Call::touch}) faulty.fail(call, 1, EROFS, 1000);
  Told told;
  Cache cache(in(temp / "cache", told.sink(), &faulty));
  CHECK(cache.state().status == DirectoryStatus::read_only);
  CHECK(entry_in(cache.get(entry.key_text)) == entry);
  CHECK(cache.put(entry) == PutResult::off);
  CHECK(cache.put(entry) == PutResult::off);
  CHECK(faulty.count(Call::write) == 0);
  CHECK(told.names == std::vector<std::string>{"cache.read_only"});

  CHECK_FALSE(cache.get(damaged.key_text));
  CHECK_FALSE(cache.get(damaged.key_text));
  CHECK(cache.stats().corrupt == 1);
  CHECK(cache.stats().known_bad == 1);
}

TEST_CASE("The state tells when writing has stopped, and when it goes on [fault]") {
  const TempDir temp;
  FaultyFileSystem faulty;
  TestClock clock;
  CacheOptions options = in(temp / "cache", {}, &faulty);
  options.clock = &clock;
  Cache cache(std::move(options));
  faulty.forget();
  faulty.fail(Call::sync, 1, ENOSPC, 2);  // the second try as well
  CHECK(cache.put(sample_entry()) == PutResult::failed);
  CHECK(cache.state().status == DirectoryStatus::read_only);
  CHECK(cache.state().reason.find("No space left") != std::string::npos);
  clock.advance(std::chrono::seconds(61));
  CHECK(cache.state().status == DirectoryStatus::usable);
  CHECK(cache.put(sample_entry()) == PutResult::stored);
  faulty.forget();
  faulty.fail(Call::rename, 1, EACCES);
  CHECK(cache.put(sample_entry()) == PutResult::failed);
  clock.advance(std::chrono::hours(100));
  CHECK(cache.state().status == DirectoryStatus::read_only);
  CHECK(cache.state().reason.find("Permission denied") != std::string::npos);
}

TEST_CASE("A sink that throws does not turn a result into a failure") {
  const TempDir temp;
  Cache cache(in(temp / "cache", [](const Event&) { throw std::runtime_error("sink"); }));
  const Entry entry = sample_entry();
  REQUIRE(cache.put(entry) == PutResult::stored);
  write_bytes(entry_path(temp / "cache", digest_of(entry.key_text)), {});
  CHECK_FALSE(cache.get(entry.key_text));
  CHECK(cache.stats().repaired == 1);
  CHECK(cache.stats().out_of_memory == 0);
}

TEST_CASE("Running out of memory half-way is a miss or a failed put [fault]") {
  const TempDir temp;
  FaultyFileSystem faulty;
  Cache cache(in(temp / "cache", {}, &faulty));
  const Entry entry = sample_entry();
  REQUIRE(cache.put(entry) == PutResult::stored);
  const int before = open_descriptors();
  faulty.before_next(Call::read, [] { throw std::bad_alloc(); });
  CHECK_FALSE(cache.get(entry.key_text));
  faulty.before_next(Call::stat, [] { throw std::bad_alloc(); });
  CHECK(cache.put(entry) == PutResult::failed);
  faulty.before_next(Call::list, [] { throw std::bad_alloc(); });
  CHECK(cache.clear().files == 0);
  CHECK(cache.stats().out_of_memory == 2);
  CHECK(open_descriptors() == before);
  CHECK(entry_in(cache.get(entry.key_text)) == entry);
}

TEST_CASE("Descriptors are not inherited by programs that are started") {
  const TempDir temp;
  FaultyFileSystem faulty;
  Cache cache(in(temp / "cache", {}, &faulty));
  int inheritable = 0;
  const auto look = [&] {
    for (int fd = 3; fd < 256; ++fd) {
      const int flags = ::fcntl(fd, F_GETFD);
      const std::string link = fmt::format("/proc/self/fd/{}", fd);
      std::error_code ignored;
      const std::string target = fs::read_symlink(link, ignored).string();
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && target.starts_with(temp.path().string())) ++inheritable;
    }
  };
  faulty.before_next(Call::write, look);
  CHECK(cache.put(sample_entry()) == PutResult::stored);
  faulty.before_next(Call::read, look);
  CHECK(cache.get(sample_entry().key_text));
  CHECK(inheritable == 0);
}

TEST_CASE("Many threads publish and read the same keys at once [tsan]") {
  const TempDir temp;
  Cache cache(in(temp / "cache"));
  constexpr int k_threads = 8, k_rounds = 60;
  std::atomic<int> wrong = 0;
  std::barrier start(k_threads);
  std::vector<std::thread> threads;
  for (int i = 0; i < k_threads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      wrong += hammer(cache, k_rounds);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(files_below(temp / "cache").size() == 3);
  CHECK(cache.stats().hits + cache.stats().misses == k_threads * k_rounds);
  CHECK(cache.stats().corrupt == 0);
}

TEST_CASE("Damage, repair, listing and clearing by many threads at once [tsan]") {
  const TempDir temp;
  Cache cache(in(temp / "cache"));
  const Entry entry = numbered_entry(1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 40; ++round) {
        if (i == 0) write_bytes(entry_path(temp / "cache", digest_of(entry.key_text)), {});
        if (i == 1) cache.list([](const ListedEntry&) {});
        if (i == 2 && round % 8 == 0) cache.clear();
        if (i >= 3) cache.put(entry);
        const auto got = cache.get(entry.key_text);
        if (got && got->entry != entry) ++wrong;
        if (cache.state().status != DirectoryStatus::usable) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.put(entry) == PutResult::stored);
  CHECK(entry_in(cache.get(entry.key_text)) == entry);
}

TEST_CASE("Many processes publish and read the same keys at once") {
  const TempDir temp;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Cache cache(in(temp / "cache"));  // all of them create the directory, too
      ::_exit(cache.state().status == DirectoryStatus::usable && hammer(cache, 60) == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(files_below(temp / "cache").size() == 3);
  Cache cache(in(temp / "cache"));
  int sound = 0;
  cache.list([&](const ListedEntry& item) { sound += item.problem.empty() ? 1 : 0; });
  CHECK(sound == 3);
}

TEST_CASE("A writer that is killed at any moment leaves the old entry or the new one [fault]") {
  const TempDir temp;
  const Entry old_entry = numbered_entry(1);
  Entry new_entry = old_entry;
  new_entry.payload = elf_payload(30000, 0x77);
  int nth = 0, old_seen = 0, new_seen = 0, leftovers = 0;
  for (int result = -1; result != 0 && nth < 50;) {
    ++nth;
    CAPTURE(nth);
    Cache cache(in(temp / "cache"));
    REQUIRE(cache.put(old_entry) == PutResult::stored);
    result = in_child([&] {
      FaultyFileSystem faulty;
      Cache own(in(temp / "cache", {}, &faulty));
      faulty.transfer_at_most(10000);
      for (int i = 1; i < nth; ++i) faulty.before_next(Call::any, [] {});
      faulty.before_next(Call::any, [] { ::kill(::getpid(), SIGKILL); });
      return own.put(new_entry) == PutResult::stored ? 0 : 1;
    });
    CHECK((result == 100 + SIGKILL || result == 0));
    const auto got = cache.get(old_entry.key_text);
    REQUIRE(got);
    REQUIRE((got->entry == old_entry || got->entry == new_entry));
    ++(got->entry == old_entry ? old_seen : new_seen);
    leftovers += static_cast<int>(files_below(temp / "cache").size()) - 1;
    CHECK(cache.clear().failed == 0);
  }
  CHECK(old_seen >= 10);  // every call up to the rename
  CHECK(new_seen >= 2);   // from then on
  CHECK(leftovers > 0);
}

TEST_CASE("Statistics of processes add up, and what came since is told apart") {
  const CacheStats before{.hits = 3, .write_failed = {{ENOSPC, 2}}};
  const CacheStats since{.hits = 1, .write_failed = {{ENOSPC, 1}, {EIO, 4}}, .out_of_memory = 5};
  CacheStats sum = before;
  sum += since;
  CHECK(sum.hits == 4);
  CHECK(sum.write_failed == ErrorCounts{{ENOSPC, 3}, {EIO, 4}});
  CHECK(to_string(sum - before) == to_string(since));
  CHECK(to_string(sum - since) == to_string(before));
}

TEST_CASE("Statistics print on one line, errors by name") {
  CacheStats stats;
  stats.hits = 3;
  stats.write_failed[ENOSPC] = 2;
  stats.write_failed[4095] = 1;
  const std::string text = fmt::format("{}", stats);
  CHECK(text.starts_with("hits=3 bundle_hits=0 remote_hits=0 misses=0 "));
  CHECK(text.find(" write_failed=3 (ENOSPC=2 E4095=1) ") != std::string::npos);
  CHECK(text.ends_with(" out_of_memory=0"));
  CHECK(text.find('\n') == std::string::npos);
}

TEST_SUITE_END();
