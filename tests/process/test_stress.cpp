// One minute of processes that fill, read and trim one small cache, and are killed and started again at
// random moments. Bounded, and repeatable in what is asked of it if not in what happens.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/cache/cache.hpp>

#include "cache/samples.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr auto k_duration = 60s;
constexpr int k_processes = 8;
constexpr unsigned k_keys = 200;
constexpr CacheLimits k_limits{.max_bytes = 512 << 10, .max_entries = 60};

// Old enough to be trimmed, not old enough for a temporary file to be taken for a dead writer's.
class LaterClock final : public Clock {
 public:
  explicit LaterClock(std::chrono::minutes by) : by_(by) {}
  std::chrono::system_clock::time_point wall() const override {
    return std::chrono::system_clock::now() + by_;
  }

 private:
  std::chrono::minutes by_;
};

// What a compile of key `number` gives, always.
Entry product(unsigned number) {
  Entry entry = sample_entry(fmt::format("number={}\n", number));
  std::mt19937_64 random(number);
  entry.payload = elf_payload(1000 + random() % 20'000);
  for (std::size_t i = 4; i + 8 <= entry.payload.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(&entry.payload[i], &word, sizeof word);
  }
  return entry;
}

// Until it is killed: gets or makes random entries. Ends with false at the first wrong byte.
bool work(const std::string& directory, unsigned seed) {
  const LaterClock clock(11min);
  Cache cache({.directory = at(directory), .limits = k_limits, .lock_wait = 2s, .clock = &clock});
  std::mt19937 random(seed);
  for (;;) {
    const Entry wanted = product(static_cast<unsigned>(random() % k_keys));
    const Digest digest = digest_of(wanted.key_text);
    auto found = cache.get(wanted.key_text, digest);
    if (!found) {
      const BuildLock lock = cache.lock_build(digest, "a stress entry");
      found = cache.get_again(wanted.key_text, digest);
      if (!found) cache.put(wanted, digest);
    }
    if (found && found->entry != wanted) return false;
  }
}

}  // namespace

TEST_SUITE_BEGIN("stress");

TEST_CASE(
    "F25: A minute of kills and restarts under a tiny cap leaves right bytes and the cap kept [nosan]") {
  const TempDir temp;
  const std::string directory = temp / "cache";
  std::mt19937 random(1);
  unsigned seed = 0;
  std::vector<pid_t> children(k_processes);
  const auto start_one = [&] {
    const unsigned own_seed = ++seed;
    return start([&directory, own_seed] { return work(directory, own_seed); });
  };
  for (pid_t& child : children) child = start_one();
  const auto end = std::chrono::steady_clock::now() + k_duration;
  int kills = 0;
  while (std::chrono::steady_clock::now() < end) {
    usleep(static_cast<unsigned>(random() % 60'000));
    pid_t& child = children[random() % k_processes];
    kill(child, SIGKILL);
    const int status = status_of(child);
    REQUIRE(
        (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));  // it had not ended by itself: no wrong byte
    ++kills;
    child = start_one();
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    const int status = status_of(child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  }
  CHECK(kills > 50);  // some 1500 where the disk is quick

  // At rest, before anybody cleans up.
  std::uint64_t bytes = 0, entries = 0;
  for (const auto& file : files_below(directory)) {
    struct ::stat stat {};
    REQUIRE(::stat(file.c_str(), &stat) == 0);
    if (!parse_entry_name(file.filename().string())) continue;
    bytes += static_cast<std::uint64_t>(stat.st_blocks) * 512;
    ++entries;
  }
  CHECK(entries > 10);
  CHECK(bytes <= k_limits.max_bytes * 12 / 10);
  CHECK(entries <= k_limits.max_entries * 12 / 10);

  const LaterClock later(120min);
  Cache cache({.directory = at(directory), .limits = k_limits, .clock = &later});
  cache.list([](const ListedEntry& entry) { CHECK_MESSAGE(entry.problem.empty(), entry.problem); });
  cache.trim(k_limits, TrimMode::remove);
  for (const auto& file : files_below(directory)) CHECK_FALSE(is_temporary_name(file.filename().string()));
  CHECK(cache.put(product(k_keys)) == PutResult::stored);
  CHECK(cache.get(product(k_keys).key_text));
}

TEST_SUITE_END();

}  // namespace jitsmith
