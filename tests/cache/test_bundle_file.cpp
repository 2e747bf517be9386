// What is read of a bundle file: sound, damaged, of another version, or changing beneath.
#include "bundle_bench.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

TEST_SUITE_BEGIN("BundleFile");

TEST_CASE("Written entries are found, others are not") {
  BundleBench bench;
  bench.write(three_entries());
  Bundle bundle = bench.open();
  REQUIRE(bundle.state().usable);
  CHECK(bundle.state().reason == "");
  CHECK(bundle.state().path == bench.path);
  CHECK(served_right(bundle) == 3);
  CHECK_FALSE(get(bundle, bundled_entry(4)));
  CHECK(bench.stats().bundle_mismatched == 0);
  CHECK(bench.told.empty());
}

TEST_CASE("Lists its entries in order of digest, with the time when it was made") {
  BundleBench bench;
  bench.write(three_entries());
  const auto made = std::chrono::system_clock::from_time_t(1'600'000'000);
  const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, bench.path.c_str(), times, 0) == 0);
  const Bundle bundle = bench.open();
  std::vector<ListedEntry> listed;
  bundle.list([&](const ListedEntry& entry) { listed.push_back(entry); });
  const auto slots = three_slots();
  REQUIRE(listed.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Entry entry = *decode(slots[i].second).entry;
    CHECK(listed[i].digest == slots[i].first);
    CHECK(listed[i].size_bytes == slots[i].second.size());
    CHECK(listed[i].last_used == made);
    CHECK(listed[i].problem == "");
    CHECK(listed[i].key_text == entry.key_text);
    CHECK(listed[i].facts == entry.facts);
  }
}

TEST_CASE("An empty bundle is a bundle") {
  BundleBench bench;
  bench.write(std::vector<Entry>{});
  Bundle bundle = bench.open();
  CHECK(bundle.state().usable);
  CHECK(served_right(bundle) == 0);
  bundle.list([](const ListedEntry&) { FAIL("nothing to list"); });
}

TEST_CASE("F1: A bundle file that is truncated at any length is refused as a whole") {
  BundleBench bench;
  const auto file = assemble(three_slots());
  bench.write(file);
  for (std::size_t length = file.size(); length-- > 0;) {
    CAPTURE(length);
    fs::resize_file(bench.path, length);
    Bundle bundle = bench.open();
    REQUIRE_FALSE(bundle.state().usable);
    REQUIRE(contains(bundle.state().reason, length < 10 ? "not a bundle file" : "is damaged"));
    REQUIRE(served_right(bundle) == 0);
  }
}

TEST_CASE("F2: With any byte changed the bundle is refused, or just the one entry is a miss") {
  BundleBench bench;
  const auto file = assemble(three_slots());
  const std::size_t index_end = k_bundle_header_bytes + 3 * k_bundle_index_bytes;
  bench.write(file);
  std::fstream stream(bench.path, std::ios::binary | std::ios::in | std::ios::out);
  const auto change = [&](std::size_t at) {
    const auto place = static_cast<std::streamoff>(at);
    const int byte = stream.seekg(place).get();
    stream.seekp(place).put(static_cast<char>(byte ^ 0x11)).flush();
    REQUIRE(stream);
  };
  for (std::size_t at = 0; at < file.size(); ++at) {
    CAPTURE(at);
    change(at);
    Bundle bundle = bench.open();
    REQUIRE(bundle.state().usable == (at >= index_end));
    REQUIRE(served_right(bundle) == (at >= index_end ? 2 : 0));
    change(at);  // back
  }
}

TEST_CASE("F3: Trailing garbage, a doubled file, zeros: refused as a whole") {
  BundleBench bench;
  auto file = assemble(three_slots());
  SUBCASE("one byte more") {
    file.push_back(std::byte{0});
  }
  SUBCASE("twice the file") {
    const auto once = file;
    file.insert(file.end(), once.begin(), once.end());
  }
  SUBCASE("all zeros") {
    std::ranges::fill(file, std::byte{0});
  }
  SUBCASE("line ends converted") {
    file.erase(file.begin() + 4);
  }
  SUBCASE("an entry of the cache") {
    file = encode(bundled_entry(1));
  }
  bench.write(file);
  Bundle bundle = bench.open();
  CHECK_FALSE(bundle.state().usable);
  CHECK(served_right(bundle) == 0);
}

TEST_CASE("F4: A count of entries that the file cannot hold makes nobody read or allocate for it") {
  BundleBench bench;
  std::vector<std::byte> head = encode_bundle_index({});
  poke(head, 16, k_bundle_max_entries);
  bench.write(head);
  const Bundle bundle = bench.open();
  CHECK(contains(bundle.state().reason, "its index is cut short"));
  CHECK(bench.faulty.count(Call::read) == 1);  // of the header
}

TEST_CASE("F40: A damaged entry of a bundle file is told once, not read again, and harms no neighbour") {
  BundleBench bench;
  auto slots = three_slots();
  slots[1].second.at(90) ^= std::byte{1};
  const Entry bad = *decode(three_slots()[1].second).entry;
  bench.write(assemble(slots));
  Bundle bundle = bench.open();
  CHECK(served_right(bundle) == 2);
  CHECK(bench.stats().bundle_corrupt == 1);
  REQUIRE(bench.told.size() == 1);
  CHECK(contains(bench.told.front(), "bundle.corrupt: "));
  CHECK(contains(bench.told.front(), bench.path));
  CHECK(contains(bench.told.front(), digest_of(bad.key_text).hex()));

  const int reads = bench.faulty.count(Call::read);
  CHECK_FALSE(get(bundle, bad));
  CHECK(bench.faulty.count(Call::read) == reads);
  CHECK(bench.stats().bundle_corrupt == 1);
  CHECK(bench.stats().known_bad == 1);
  CHECK(bench.told.size() == 1);

  std::vector<std::string> problems;
  bundle.list([&](const ListedEntry& listed) { problems.push_back(listed.problem); });
  CHECK(problems == std::vector<std::string>{"", "wrong checksum", ""});
  CHECK(bench.stats().bundle_corrupt == 1);
}

TEST_CASE("F5: A sound entry under another key's digest is not served, and told once") {
  BundleBench bench;
  const Entry stranger = bundled_entry(7), wanted = bundled_entry(1);
  bench.write(assemble({{digest_of(wanted.key_text), encode(stranger)}}));
  Bundle bundle = bench.open();
  REQUIRE(bundle.state().usable);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(get(bundle, wanted));
  CHECK_FALSE(bundle.get(stranger.key_text, digest_of(stranger.key_text)));
  CHECK(bench.stats().bundle_mismatched == 1);
  CHECK(bench.stats().bundle_corrupt == 0);
  REQUIRE(bench.told.size() == 1);
  CHECK(contains(bench.told.front(), "bundle.mismatched: "));
  bundle.list(
      [](const ListedEntry& listed) { CHECK(listed.problem == "stored under the digest of another key"); });
}

TEST_CASE("F6: Of two keys with one digest the bundle serves the one that it has") {
  BundleBench bench;
  const Entry entry = bundled_entry(1);
  bench.write({entry});
  Bundle bundle = bench.open();
  CHECK_FALSE(bundle.get("another key", digest_of(entry.key_text)));
  CHECK_FALSE(bundle.get(entry.key_text + "\n", digest_of(entry.key_text)));
  CHECK(bench.stats().bundle_mismatched == 2);
  CHECK(get(bundle, entry) == entry);
}

TEST_CASE("F7: An entry of a later version in a bundle file is passed over, and is no damage") {
  BundleBench bench;
  auto slots = three_slots();
  poke(slots[0].second, 8, std::uint16_t{2});
  bench.write(assemble(slots));
  Bundle bundle = bench.open();
  for (int i = 0; i < 2; ++i) CHECK(served_right(bundle) == 2);
  CHECK(bench.stats().bundle_mismatched == 1);
  CHECK(bench.stats().bundle_corrupt == 0);
  REQUIRE(bench.told.size() == 1);
  CHECK(contains(bench.told.front(), "later version"));
}

TEST_CASE(
    "F18: An entry of a bundle that cannot be read is a miss under its errno, and tried again [fault]") {
  for (const int error : {EIO, ESTALE, ENOMEM}) {
    CAPTURE(error);
    BundleBench bench;
    bench.write(three_entries());
    Bundle bundle = bench.open();
    bench.faulty.forget();
    bench.faulty.fail(Call::read, 1, error);
    CHECK_FALSE(get(bundle, bundled_entry(1)));
    CHECK(bench.stats().read_failed == ErrorCounts{{error, 1}});
    CHECK(bench.stats().bundle_corrupt == 0);
    REQUIRE(bench.told.size() == 1);
    CHECK(contains(bench.told.front(), "bundle.read_failed: "));
    CHECK(served_right(bundle) == 3);
    bench.faulty.forget();
    bench.faulty.fail(Call::read, 2, error);
    std::vector<bool> sound;
    bundle.list([&](const ListedEntry& listed) { sound.push_back(listed.problem.empty()); });
    CHECK(sound == std::vector<bool>{true, false, true});
  }
}

TEST_CASE("F12: Short reads and interruptions of a bundle change nothing [fault]") {
  BundleBench bench;
  bench.write(three_entries());
  bench.faulty.transfer_at_most(7);
  bench.faulty.fail(Call::open, 1, EINTR, 2);
  bench.faulty.fail(Call::read, 1, EINTR, 3);
  Bundle bundle = bench.open();
  bench.faulty.fail(Call::read, 2, EINTR, 3);
  CHECK(served_right(bundle) == 3);
  CHECK(bench.faulty.count(Call::read) > 30);
}

TEST_CASE("F18: A bundle that shrinks or changes once it is open gives misses, never wrong bytes") {
  BundleBench bench;
  bench.write(three_entries());
  Bundle bundle = bench.open();
  REQUIRE(served_right(bundle) == 3);
  SUBCASE("shrunk into the last entry") {
    fs::resize_file(bench.path, fs::file_size(bench.path) - 1);
    CHECK(served_right(bundle) == 2);
    CHECK(bench.stats().bundle_corrupt == 1);
  }
  SUBCASE("emptied") {
    fs::resize_file(bench.path, 0);
    CHECK(served_right(bundle) == 0);
    CHECK(bench.stats().bundle_corrupt == 3);
  }
  SUBCASE("overwritten in place by another bundle") {
    BundleWriter writer;
    for (int number = 10; number < 13; ++number) REQUIRE(writer.add(bundled_entry(number)));
    REQUIRE(writer.write(real_file_system(), bench.temp / "other") == 0);
    write_bytes(bench.path, read_bytes(bench.temp / "other"));
    CHECK(served_right(bundle) == 0);
  }
  SUBCASE("replaced as a whole: the opened one is read on") {
    bench.write({bundled_entry(10)});
    CHECK(served_right(bundle) == 3);
    CHECK(served_right(bundle) == 3);
  }
  SUBCASE("removed: likewise") {
    fs::remove(bench.path);
    CHECK(served_right(bundle) == 3);
  }
}

TEST_CASE("F27: An open bundle goes on in a forked child, and is not inherited by a program") {
  BundleBench bench;
  auto slots = three_slots();
  slots[0].second.at(90) ^= std::byte{1};
  bench.write(assemble(slots));
  Bundle bundle = bench.open();
  CHECK(in_child([&] { return served_right(bundle) == 2 && bench.stats().bundle_corrupt == 1 ? 0 : 1; }) ==
        0);
  CHECK(served_right(bundle) == 2);

  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    std::error_code ignored;
    if (fs::read_symlink(fmt::format("/proc/self/fd/{}", fd), ignored) != bench.path) continue;
    ++found;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(found == 1);
}

TEST_CASE("Many threads read one bundle at once, and a damaged entry is told once [tsan]") {
  BundleBench bench;
  auto slots = three_slots();
  const Entry bad = *decode(slots[1].second).entry;
  slots[1].second.at(90) ^= std::byte{1};
  bench.write(assemble(slots));
  std::atomic<int> told = 0;
  const EventSink count = [&](const Event&) { ++told; };
  Bundle bundle({real_file_system(), bench.clock, bench.counters, count}, bench.path);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        for (const Entry& entry : three_entries()) {
          const auto got = get(bundle, entry);
          if (entry == bad ? got.has_value() : got != entry) ++wrong;
        }
        if (round % 10 == 0) bundle.list([](const ListedEntry&) {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(told == 1);
  CHECK(bench.stats().bundle_corrupt == 1);
}

TEST_SUITE_END();
