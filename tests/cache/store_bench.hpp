// A store over a file system that fails where it is told to.
#pragma once

#include "../support/faulty_file_system.hpp"
#include "../support/temp_dir.hpp"
#include "samples.hpp"

#include <jitsmith/cache/directory.hpp>
#include <jitsmith/cache/store.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace jitsmith::test {

namespace fs = std::filesystem;

// In a directory of its own.
struct Bench {
  explicit Bench(const CacheLimits& limits = {}) { open(StoreAccess::own, limits); }

  // Anew, as another process would; the counters and the clock go on.
  void open(StoreAccess access = StoreAccess::own, const CacheLimits& limits = {}) {
    Directory directory = open_directory(faulty, at(root));
    REQUIRE(directory.state.status == DirectoryStatus::usable);
    store.emplace(CacheContext{faulty, clock, counters, events}, std::move(directory.entries), access,
                  limits);
    faulty.forget();
  }

  // The first put of a store scans the directory, whose calls would be in the way of a test that counts them.
  void seed() {
    const Entry first = sample_entry("seed");
    REQUIRE(put(first) == PutResult::stored);
    REQUIRE(store->remove(digest_of(first.key_text)));
    fs::remove(entry_path(root, digest_of(first.key_text)).parent_path());
    faulty.forget();
  }

  // Entries 0 .. count - 1, the first the oldest; each an hour younger than the one before it.
  void fill(int count, std::size_t payload_bytes = 100) {
    for (int i = 0; i < count; ++i) {
      REQUIRE(put(numbered(i, payload_bytes)) == PutResult::stored);
      set_age(numbered_path(i), std::chrono::hours(count - i));
    }
  }
  static Entry numbered(int i, std::size_t payload_bytes = 100) {
    return sample_entry("number=" + std::to_string(i), payload_bytes);
  }
  fs::path numbered_path(int i) const { return entry_path(root, digest_of(numbered(i).key_text)); }
  std::vector<int> left_of(int count) const {
    std::vector<int> left;
    for (int i = 0; i < count; ++i)
      if (fs::exists(numbered_path(i))) left.push_back(i);
    return left;
  }

  PutResult put(const Entry& value) { return store->put(value, digest_of(value.key_text)); }
  std::optional<Entry> get(const std::string& key) { return store->get(key, digest_of(key)); }
  std::optional<Entry> get() { return get(entry.key_text); }
  CacheStats stats() const { return counters.snapshot(); }
  fs::path path() const { return entry_path(root, digest); }
  fs::path shard() const { return path().parent_path(); }

  TempDir temp;
  fs::path root = temp.path() / "cache";
  FaultyFileSystem faulty;
  TestClock clock;
  CacheCounters counters;
  std::vector<std::string> told;
  EventSink events = [this](const Event& event) {
    told.push_back(std::string(event.what) + ": " + event.text);
  };
  std::optional<Store> store;
  Entry entry = sample_entry();
  Digest digest = digest_of(entry.key_text);
};

}  // namespace jitsmith::test
