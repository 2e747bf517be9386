// A publish whose system calls fail or are its last, one after another: by strace, on a program of its own.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/cache/cache.hpp>

#include "cache/samples.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

struct Publish {
  // The statistics that the child printed, and how it ended.
  std::string printed;
  int status = 0;
  bool killed = false;
};

class Straced {
 public:
  Straced() { REQUIRE(run("", 1).status == 0); }  // there is an old entry

  Publish run(const std::string& strace, int fill) {
    const std::string output = temp_ / "output";
    const std::string child = fmt::format("{} {} {} > {}", JITSMITH_PUBLISH_CHILD, root(), fill, output);
    const int status = std::system(fmt::format("{} {}", strace, child).c_str());
    std::ifstream in(output);
    Publish publish;
    std::getline(in, publish.printed);
    // The shell, or strace itself, passes on a signal as 128 + its number.
    publish.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    publish.killed = publish.status == 128 + SIGKILL;
    return publish;
  }

  std::string root() const { return temp_ / "cache"; }
  std::string log() const { return temp_ / "log"; }

  // What the entry is filled with; every entry of the store must verify.
  int fill() const {
    Cache cache({.directory = at(root())});
    cache.list([](const ListedEntry& entry) { CHECK_MESSAGE(entry.problem.empty(), entry.problem); });
    const auto found = cache.get(sample_entry().key_text);
    return found ? std::to_integer<int>(found->entry.payload.back()) : -1;
  }

  struct SystemCall {
    std::string name;
    int nth = 0;  // of this name, as strace counts: from the start of the program
  };

  // Those of a publish, from the first that concerns the cache. Of the walk over the directory that follows
  // the rename, some: they are all alike.
  std::vector<SystemCall> calls() {
    run(fmt::format("strace -qq -o {}", log()), 1);
    std::vector<SystemCall> calls;
    std::map<std::string, int> counts;
    std::size_t first = 0, renamed = 0;
    std::ifstream in(log());
    for (std::string line; std::getline(in, line);) {
      const std::string name = line.substr(0, line.find('('));
      // The directory is entered part by part: its last one is named alone.
      if (first == 0 && line.find("\"cache\"") != std::string::npos) first = calls.size();
      calls.push_back({name, ++counts[name]});
      if (name.starts_with("rename")) renamed = calls.size();
    }
    REQUIRE(first > 0);
    REQUIRE(renamed > first + 10);
    constexpr std::size_t k_some = 12;
    REQUIRE(calls.size() > renamed + 2 * k_some);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(renamed + k_some), calls.end() - k_some);
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(first));
    return calls;
  }

 private:
  TempDir temp_;
};

bool strace_works() {
  if (std::system(
          "strace -qq -o /dev/null -e trace=write -e inject=write:error=EIO:when=999 true 2>/dev/null") == 0)
    return true;
  report_skip("strace is missing, or may not trace here");
  return false;
}

class ShiftedClock final : public Clock {
 public:
  std::chrono::system_clock::time_point wall() const override {
    return std::chrono::system_clock::now() + std::chrono::hours(2);
  }
};

}  // namespace

TEST_SUITE_BEGIN("system calls");

TEST_CASE("F20: Killed at any system call, a publish leaves the old entry or the new one [nosan] [fault]") {
  if (!strace_works()) return;
  Straced publish;
  const auto calls = publish.calls();
  int old_ones = 0, new_ones = 0;
  for (const auto& [name, nth] : calls) {
    CAPTURE(name);
    CAPTURE(nth);
    publish.run("", 1);
    const Publish killed = publish.run(
        fmt::format("strace -qq -o /dev/null -e inject={}:signal=SIGKILL:when={} 2> /dev/null", name, nth),
        2);
    CHECK(killed.killed);
    const int fill = publish.fill();
    CHECK((fill == 1 || fill == 2));
    ++(fill == 1 ? old_ones : new_ones);
  }
  CHECK(calls.size() > 30);
  CHECK(old_ones > 5);
  CHECK(new_ones > 0);

  // Some left a temporary file; they are swept once they are surely nobody's.
  const ShiftedClock later;
  Cache cache({.directory = at(publish.root()), .clock = &later});
  CHECK(cache.trim({}, TrimMode::remove).swept > 0);
  std::size_t temporary = 0;
  for (const auto& file : files_below(publish.root()))
    temporary += is_temporary_name(file.filename().string()) ? 1 : 0;
  CHECK(temporary == 0);
}

TEST_CASE(
    "F11: Any failing write, sync, close, mode or rename of a publish is counted and heals [nosan] [fault]") {
  if (!strace_works()) return;
  Straced publish;
  int counted = 0;
  for (const auto& [name, nth] : publish.calls()) {
    constexpr std::string_view k_of_interest = "write fsync close fchmod renameat";
    if (k_of_interest.find(name) == std::string_view::npos) continue;
    for (const char* error : {"ENOSPC", "EDQUOT", "EIO"}) {
      CAPTURE(name);
      CAPTURE(nth);
      CAPTURE(error);
      publish.run("", 1);
      // From then on, for on a full disk a publish is tried once more.
      const Publish failed =
          publish.run(fmt::format("strace -qq -o /dev/null -e trace={0} -e inject={0}:error={1}:when={2}+",
                                  name, error, nth),
                      2);
      CHECK(failed.status == 0);
      if (failed.printed.find(std::string(error) + "=1") != std::string::npos) ++counted;
      const int fill = publish.fill();
      CHECK((fill == 1 || fill == 2));
    }
  }
  CHECK(counted >= 12);
  CHECK(publish.run("", 3).status == 0);
  CHECK(publish.fill() == 3);
}

TEST_SUITE_END();

}  // namespace jitsmith
