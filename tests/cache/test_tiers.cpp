// A cache over its own directory and bundles: what is found where, and what is copied.
#include "bundle_bench.hpp"

#include <jitsmith/cache/cache.hpp>

#include <map>
#include <tuple>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

// Two bundles, made by hand as a container's build would: a cache directory and a file.
struct Tiers {
  Tiers() {
    put_into(folder, {bundled_entry(1), bundled_entry(2)});
    write_file({bundled_entry(3), bundled_entry(4)});
  }

  static void put_into(const fs::path& directory, const std::vector<Entry>& entries) {
    Cache cache({.directory = at(directory)});
    for (const Entry& entry : entries) REQUIRE(cache.put(entry) == PutResult::stored);
  }
  void write_file(const std::vector<Entry>& entries) const {
    BundleWriter writer;
    for (const Entry& entry : entries) REQUIRE(writer.add(entry));
    REQUIRE(writer.write(real_file_system(), file) == 0);
  }

  CacheOptions options(std::vector<std::string> bundles) {
    CacheOptions options{.directory = at(own), .bundles = std::move(bundles)};
    options.events = [this](const Event& event) { told.emplace_back(event.what); };
    return options;
  }
  CacheOptions options() { return options({folder, file}); }

  std::size_t count_told(std::string_view what) const {
    return static_cast<std::size_t>(std::ranges::count(told, what));
  }

  TempDir temp;
  std::string own = temp / "own", folder = temp / "folder", file = temp / "file.jsb";
  std::vector<std::string> told;
};

// Everything that a write, a touch, a removal or a lock file would change: names, sizes, modes, times.
using State = std::tuple<std::uintmax_t, mode_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::map<std::string, State> snapshot(const fs::path& root) {
  std::map<std::string, State> states;
  const auto note = [&](const fs::path& path) {
    struct ::stat stat {};
    REQUIRE(::lstat(path.c_str(), &stat) == 0);
    states[path.string()] = {stat.st_size,         stat.st_mode,        stat.st_mtim.tv_sec,
                             stat.st_mtim.tv_nsec, stat.st_ctim.tv_sec, stat.st_ctim.tv_nsec};
  };
  note(root);
  if (fs::is_directory(root))
    for (const auto& item : fs::recursive_directory_iterator(root)) note(item.path());
  return states;
}

// Old enough that a get from the own directory would touch them.
void age(const fs::path& root) {
  const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  for (const fs::path& path : files_below(root)) REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_SUITE_BEGIN("Tiers");

TEST_CASE("A cache that is only looked at finds the same and makes no directory") {
  Tiers tiers;
  CacheOptions options = tiers.options();
  options.look_only = true;
  Cache cache(options);
  for (int round = 0; round < 2; ++round) {
    const auto found = cache.get(bundled_entry(1).key_text);
    REQUIRE(found);
    CHECK(found->entry == bundled_entry(1));
    CHECK(found->tier == Tier::bundle);
  }
  CHECK(cache.put(bundled_entry(5)) == PutResult::off);
  CHECK_FALSE(fs::exists(tiers.own));
  CHECK(cache.stats().copied_up == 0);
  CHECK(tiers.count_told("cache.off") == 1);
  CHECK(contains(cache.state().reason, "does not exist; store a kernel to make it"));
}

TEST_CASE("A look changes nothing in the cache directory, not even what is damaged or old") {
  Tiers tiers;
  const Entry good = bundled_entry(5), damaged = bundled_entry(6), in_file = bundled_entry(3);
  Tiers::put_into(tiers.own, {good, damaged});
  const fs::path bad = entry_path(tiers.own, digest_of(damaged.key_text));
  auto bytes = read_bytes(bad);
  bytes.back() ^= std::byte{1};
  write_bytes(bad, bytes);
  fs::remove(fs::path(tiers.own) / "CACHEDIR.TAG");
  age(tiers.own);
  const auto before = snapshot(tiers.own);

  CacheOptions options = tiers.options();
  options.look_only = true;
  Cache cache(options);
  CHECK(cache.state().status == DirectoryStatus::usable);
  CHECK(cache.get(good.key_text)->tier == Tier::directory);
  CHECK(cache.get(in_file.key_text)->tier == Tier::bundle);
  for (int round = 0; round < 2; ++round) CHECK_FALSE(cache.get(damaged.key_text));
  CHECK(cache.stats().corrupt == 1);
  CHECK(cache.put(bundled_entry(7)) == PutResult::off);
  CHECK_FALSE(cache.remove(digest_of(good.key_text)));
  cache.trim({.max_bytes = 1, .max_entries = 1}, TrimMode::remove);
  CHECK(cache.clear().files == 0);
  CHECK(cache.lock_build(digest_of(good.key_text), "it").outcome != LockOutcome::held);
  CHECK(snapshot(tiers.own) == before);
}

TEST_CASE("F40: A hit in a bundle is copied to the cache directory, and the bundle stays as it is") {
  Tiers tiers;
  age(tiers.folder);
  const auto folder_before = snapshot(tiers.folder), file_before = snapshot(tiers.file);
  Cache cache(tiers.options());
  for (const BundleState& state : cache.bundle_states()) CHECK(state.usable);
  for (const int number : {1, 3}) {
    CAPTURE(number);
    const Entry entry = bundled_entry(number);
    const auto first = cache.get(entry.key_text);
    REQUIRE(first);
    CHECK(first->entry == entry);
    CHECK(first->tier == Tier::bundle);
    const auto second = cache.get(entry.key_text);
    REQUIRE(second);
    CHECK(second->entry == entry);
    CHECK(second->tier == Tier::directory);
  }
  CHECK_FALSE(cache.get(bundled_entry(5).key_text));
  const CacheStats stats = cache.stats();
  CHECK(stats.bundle_hits == 2);
  CHECK(stats.copied_up == 2);
  CHECK(stats.hits == 2);
  CHECK(stats.misses == 1);
  CHECK(files_below(tiers.own).size() == 2);

  cache.put(bundled_entry(6));
  cache.remove(digest_of(bundled_entry(1).key_text));
  cache.list_bundles([](const ListedEntry& entry) { CHECK(entry.problem == ""); });
  cache.trim({.max_bytes = 1, .max_entries = 1}, TrimMode::remove);
  cache.clear();
  CHECK(snapshot(tiers.folder) == folder_before);
  CHECK(snapshot(tiers.file) == file_before);
  // Removed from the own directory, it is in the bundle still.
  CHECK(cache.get(bundled_entry(1).key_text)->tier == Tier::bundle);
}

TEST_CASE("F40: The copy of an entry is served when the bundle is gone") {
  Tiers tiers;
  {
    Cache cache(tiers.options());
    for (const int number : {1, 3}) REQUIRE(cache.get(bundled_entry(number).key_text));
  }
  fs::remove_all(tiers.folder);
  fs::remove(tiers.file);
  Cache cache(tiers.options());
  CHECK(tiers.count_told("bundle.refused") == 2);
  for (const BundleState& state : cache.bundle_states()) CHECK(contains(state.reason, "does not exist"));
  for (const int number : {1, 3}) CHECK(cache.get(bundled_entry(number).key_text)->tier == Tier::directory);
  CHECK_FALSE(cache.get(bundled_entry(2).key_text));
}

TEST_CASE("F40: A bad entry of a bundle is skipped, and the next bundle has it") {
  Tiers tiers;
  const Entry entry = bundled_entry(1), neighbour = bundled_entry(2);
  const fs::path bad = entry_path(tiers.folder, digest_of(entry.key_text));
  auto bytes = read_bytes(bad);
  bytes.back() ^= std::byte{1};
  write_bytes(bad, bytes);
  age(tiers.folder);
  tiers.write_file({entry});
  const auto before = snapshot(tiers.folder);

  Cache cache(tiers.options());
  const auto got = cache.get(entry.key_text);
  REQUIRE(got);
  CHECK(got->entry == entry);
  CHECK(got->tier == Tier::bundle);
  CHECK(cache.get(neighbour.key_text)->entry == neighbour);
  CHECK(cache.stats().bundle_corrupt == 1);
  CHECK(cache.stats().corrupt == 0);
  CHECK(cache.stats().copied_up == 2);
  CHECK(tiers.count_told("bundle.corrupt") == 1);
  CHECK(snapshot(tiers.folder) == before);  // not repaired: it is not ours
}

TEST_CASE("F40: An entry that is bad in every bundle is a miss, and the compiled one is kept") {
  Tiers tiers;
  const Entry in_folder = bundled_entry(1), in_file = bundled_entry(3);
  const fs::path bad = entry_path(tiers.folder, digest_of(in_folder.key_text));
  fs::resize_file(bad, 70);
  auto bytes = read_bytes(tiers.file);
  bytes.back() ^= std::byte{1};                  // one of the two entries
  bytes.at(bytes.size() - 250) ^= std::byte{1};  // and the other
  write_bytes(tiers.file, bytes);
  Cache cache(tiers.options());
  for (const Entry& entry : {in_folder, in_file}) {
    CAPTURE(entry.key_text);
    CHECK_FALSE(cache.get(entry.key_text));
    CHECK_FALSE(cache.get(entry.key_text));
    CHECK(cache.put(entry) == PutResult::stored);
    CHECK(cache.get(entry.key_text)->tier == Tier::directory);
  }
  CHECK(cache.stats().bundle_corrupt == 2);  // each told once
  CHECK(cache.stats().misses == 4);
  CHECK(fs::file_size(bad) == 70);
}

TEST_CASE("F40: Bundles are asked in their order, after the cache directory") {
  Tiers tiers;
  Entry in_own = bundled_entry(1), in_folder = bundled_entry(2), in_file = bundled_entry(2);
  in_own.facts = "own";
  in_file.facts = "file";
  tiers.write_file({in_file});
  Tiers::put_into(tiers.own, {in_own});
  for (const bool folder_first : {true, false}) {
    CAPTURE(folder_first);
    CacheOptions options = tiers.options(folder_first ? std::vector{tiers.folder, tiers.file}
                                                      : std::vector{tiers.file, tiers.folder});
    Cache cache(std::move(options));
    CHECK(cache.get(in_own.key_text)->entry == in_own);
    CHECK(cache.get(in_folder.key_text)->entry == (folder_first ? in_folder : in_file));
    CHECK(cache.remove(digest_of(in_folder.key_text)));  // the copy
  }
}

TEST_CASE("F40: Bundles serve where the cache directory is off or takes nothing [fault]") {
  Tiers tiers;
  CacheOptions options = tiers.options();
  FaultyFileSystem faulty;
  SUBCASE("off") {
    options.directory.enabled = false;
  }
  SUBCASE("refused") {
    fs::create_directory(tiers.own);
    REQUIRE(::chmod(tiers.own.c_str(), 0777) == 0);
  }
  SUBCASE("read-only") {
    faulty.fail(Call::check_writable, 1, EROFS);
    options.file_system = &faulty;
  }
  SUBCASE("full") {
    faulty.fail(Call::write, 2, ENOSPC, 1000);  // after CACHEDIR.TAG
    options.file_system = &faulty;
  }
  Cache cache(std::move(options));
  for (int round = 0; round < 2; ++round) {
    for (const int number : {1, 3}) {
      const auto got = cache.get(bundled_entry(number).key_text);
      REQUIRE(got);
      CHECK(got->entry == bundled_entry(number));
      CHECK(got->tier == Tier::bundle);
    }
  }
  CHECK(cache.stats().bundle_hits == 4);
  CHECK(cache.stats().copied_up == 0);
}

TEST_CASE("F7: Entries and bundles of a later version are passed over and left alone") {
  Tiers tiers;
  const Entry entry = bundled_entry(1);
  const fs::path newer = entry_path(tiers.folder, digest_of(entry.key_text));
  auto bytes = read_bytes(newer);
  poke(bytes, 8, std::uint16_t{2});
  write_bytes(newer, bytes);
  auto file = read_bytes(tiers.file);
  poke(file, 8, std::uint16_t{2});
  write_bytes(tiers.file, file);
  const auto folder_before = snapshot(tiers.folder), file_before = snapshot(tiers.file);

  Cache cache(tiers.options());
  CHECK(cache.bundle_states().at(0).usable);
  CHECK(contains(cache.bundle_states().at(1).reason, "newer format version"));
  CHECK_FALSE(cache.get(entry.key_text));
  CHECK(cache.stats().bundle_mismatched == 1);
  CHECK(cache.stats().bundle_corrupt == 0);
  CHECK(cache.get(bundled_entry(2).key_text)->tier == Tier::bundle);
  CHECK(snapshot(tiers.folder) == folder_before);
  CHECK(snapshot(tiers.file) == file_before);
}

TEST_SUITE_END();
