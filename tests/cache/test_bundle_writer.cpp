// What is written as a bundle file, and what a write that fails leaves.
#include "bundle_bench.hpp"

#include <algorithm>
#include <cerrno>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(folder)) names.push_back(item.path().filename().string());
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("BundleWriter");

TEST_CASE("Equal sets of entries have equal bytes, in whatever order they came") {
  BundleBench bench;
  std::vector<Entry> entries = three_entries();
  bench.write(entries);
  const auto bytes = read_bytes(bench.path);
  CHECK(bytes == assemble(three_slots()));
  std::ranges::sort(entries, {}, &Entry::key_text);
  do {
    bench.write(entries);
    REQUIRE(read_bytes(bench.path) == bytes);
  } while (std::ranges::next_permutation(entries, {}, &Entry::key_text).found);
  entries.push_back(entries.front());
  bench.write(entries);
  CHECK(read_bytes(bench.path) == bytes);
}

TEST_CASE("The second entry of a key replaces the first") {
  BundleBench bench;
  Entry newer = bundled_entry(1);
  newer.facts = "other facts";
  bench.write({bundled_entry(1), newer});
  Bundle bundle = bench.open();
  CHECK(get(bundle, newer) == newer);
}

TEST_CASE("A writer takes only what is fit to store, and knows its size") {
  BundleBench bench;
  BundleWriter writer;
  Entry unfit = bundled_entry(1);
  unfit.payload.clear();
  CHECK_FALSE(writer.add(unfit));
  CHECK(writer.size() == 0);
  CHECK(writer.bytes() == k_bundle_header_bytes);
  for (const Entry& entry : three_entries()) CHECK(writer.add(entry));
  CHECK(writer.size() == 3);
  REQUIRE(writer.write(real_file_system(), bench.path) == 0);
  CHECK(writer.bytes() == fs::file_size(bench.path));
}

TEST_CASE("The golden bundle of version 1 stays readable and is still what we write") {
  BundleBench bench;
  std::vector<Entry> expected;
  for (int number = 0; number < 3; ++number) {
    Entry entry{number == 2 ? EntryKind::host_object : EntryKind::cubin,
                fmt::format("format=1\ntemplate=golden\nnumber={}\n", number),
                fmt::format("lowered=_Z6goldenPf\nregisters={}\n", number), elf_payload(20)};
    for (int i = 0; i < 100; ++i) entry.payload.push_back(static_cast<std::byte>(i * 7 + number));
    expected.push_back(std::move(entry));
  }
  // Where what we write differs, it lies there: it may become the golden file of a next version, no other.
  const std::string written = std::string(JITSMITH_TEST_BINARY_DIR) + "/bundle.written.bin";
  BundleWriter writer;
  for (const Entry& entry : expected) REQUIRE(writer.add(entry));
  REQUIRE(writer.write(real_file_system(), written) == 0);

  const auto golden = read_bytes(std::string(JITSMITH_TEST_SOURCE_DIR) + "/tests/golden/bundle.v1.bin");
  REQUIRE(!golden.empty());
  bench.write(golden);
  Bundle bundle = bench.open();
  INFO(bundle.state().reason);
  REQUIRE(bundle.state().usable);
  for (const Entry& entry : expected) CHECK(get(bundle, entry) == entry);
  CHECK(read_bytes(written) == golden);
}

TEST_CASE("F34: A bundle is written so that its readers trust it, whatever the umask") {
  for (const mode_t mask : {0000, 0002, 0022, 0077}) {
    CAPTURE(mask);
    BundleBench bench;
    const mode_t saved = ::umask(mask);
    bench.write(three_entries());
    ::umask(saved);
    CHECK(mode_of(bench.path) == (0644u & ~mask));
    CHECK(bench.open().state().usable);
  }
}

TEST_CASE("F11: Any failing call of writing a bundle leaves the old one and no other file [fault]") {
  BundleBench bench;
  const std::vector<Entry> old_entries = {bundled_entry(9)};
  bench.write(old_entries);
  const auto old_bytes = read_bytes(bench.path);
  BundleWriter writer;
  for (const Entry& entry : three_entries()) REQUIRE(writer.add(entry));
  int failures = 0;
  for (int nth = 1;; ++nth) {
    REQUIRE(nth < 100);
    FaultyFileSystem faulty;
    faulty.transfer_at_most(100);
    faulty.fail(Call::any, nth, ENOSPC);
    const int before = open_descriptors();
    const int error = writer.write(faulty, bench.path);
    CHECK(open_descriptors() == before);
    CHECK(names_in(bench.temp.path()).size() == 1);
    if (error == 0) break;
    CHECK(error == ENOSPC);
    REQUIRE(read_bytes(bench.path) == old_bytes);
    ++failures;
  }
  CHECK(failures > 8);  // open, a write for each 100 bytes, sync, close, rename
  CHECK(read_bytes(bench.path) == assemble(three_slots()));
}

TEST_CASE("F12: A bundle larger than the file size limit is not begun [fault]") {
  BundleBench bench;
  BundleWriter writer;
  REQUIRE(writer.add(bundled_entry(1)));
  FaultyFileSystem faulty;
  faulty.limit_file_size(writer.bytes() - 1);
  CHECK(writer.write(faulty, bench.path) == EFBIG);
  CHECK(names_in(bench.temp.path()).empty());
  faulty.limit_file_size(writer.bytes());
  CHECK(writer.write(faulty, bench.path) == 0);
}

TEST_SUITE_END();
