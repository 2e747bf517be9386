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
  Bench() {
    Directory directory = open_directory(faulty, at(root));
    REQUIRE(directory.state.status == DirectoryStatus::usable);
    store.emplace(Store::Context{faulty, clock, counters, events}, std::move(directory.entries));
    faulty.forget();
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
