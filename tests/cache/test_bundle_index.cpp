#include "bundle_bench.hpp"

#include <jitsmith/cache/bundle_file.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

constexpr std::size_t k_version_at = 8, k_reserved_at = 10, k_header_len_at = 12, k_count_at = 16,
                      k_checksum_at = 24;
constexpr std::uint64_t k_largest = std::numeric_limits<std::uint64_t>::max();

std::uint64_t end_of(const std::vector<BundleSlot>& slots) {
  return slots.empty() ? k_bundle_header_bytes : slots.back().offset + slots.back().size_bytes;
}

// `count` entries of 100, 101, ... bytes.
std::vector<BundleSlot> sound_slots(std::uint64_t count) {
  std::vector<BundleSlot> slots;
  std::uint64_t offset = k_bundle_header_bytes + count * k_bundle_index_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    slots.push_back({Digest{i / 3, i}, offset, 100 + i});
    offset += 100 + i;
  }
  return slots;
}

void reseal(std::vector<std::byte>& head) {
  poke(head, k_checksum_at, std::uint64_t{0});
  poke(head, k_checksum_at + 8, std::uint64_t{0});
  const Digest checksum = digest_of({reinterpret_cast<const char*>(head.data()), head.size()});
  poke(head, k_checksum_at, checksum.high);
  poke(head, k_checksum_at + 8, checksum.low);
}

// Why these slots, under a right checksum, are refused.
std::string problem_of(const std::vector<BundleSlot>& slots, std::uint64_t file_bytes) {
  const DecodedBundleIndex decoded = decode_bundle_index(encode_bundle_index(slots), file_bytes);
  CHECK(decoded.slots.empty());
  return decoded.problem;
}

}  // namespace

TEST_SUITE_BEGIN("Bundle index");

TEST_CASE("A bundle's index comes back as it was") {
  for (const std::uint64_t count : {0, 1, 2, 7}) {
    const auto slots = sound_slots(count);
    const auto head = encode_bundle_index(slots);
    CHECK(head.size() == k_bundle_header_bytes + count * k_bundle_index_bytes);
    CHECK(bundle_index_end(std::span(head).first(k_bundle_header_bytes)) == head.size());
    const DecodedBundleIndex decoded = decode_bundle_index(head, end_of(slots));
    CHECK(decoded.problem == "");
    CHECK(decoded.slots == slots);
  }
}

TEST_CASE("F1: A bundle's index that is truncated at any length is refused") {
  const auto slots = sound_slots(2);
  const auto head = encode_bundle_index(slots);
  for (std::size_t length = 0; length < head.size(); ++length) {
    CAPTURE(length);
    const auto decoded = decode_bundle_index(std::span(head).first(length), end_of(slots));
    REQUIRE(decoded.slots.empty());
    REQUIRE(decoded.problem != "");
  }
}

TEST_CASE("F2: A bundle's index with any bit flipped is refused") {
  const auto slots = sound_slots(3);
  const auto head = encode_bundle_index(slots);
  for (std::size_t at = 0; at < head.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = head;
      flipped[at] ^= static_cast<std::byte>(1 << bit);
      REQUIRE(decode_bundle_index(flipped, end_of(slots)).problem != "");
    }
  }
}

TEST_CASE("F4: A count that lies is refused before anything is allocated, also under a right checksum") {
  const auto slots = sound_slots(3);
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{4}, k_bundle_max_entries, k_bundle_max_entries + 1,
        (std::uint64_t{1} << 59) + 3, k_largest}) {
    CAPTURE(count);
    auto head = encode_bundle_index(slots);
    poke(head, k_count_at, count);
    reseal(head);
    const auto decoded = decode_bundle_index(head, end_of(slots));
    CHECK(decoded.slots.capacity() == 0);
    CHECK(contains(decoded.problem, "is damaged"));
    CHECK(bundle_index_end(head).has_value() == (count <= k_bundle_max_entries));
  }
}

TEST_CASE("F4: Sizes and offsets that lie are refused, also under a right checksum") {
  const auto sound = sound_slots(3);
  const std::uint64_t end = end_of(sound);
  auto slots = sound;
  REQUIRE(contains(problem_of(sound, end - 1), "its index covers"));
  REQUIRE(contains(problem_of(sound, end + 1), "its index covers"));
  REQUIRE(contains(problem_of(sound, 0), "its index covers"));
  REQUIRE(contains(problem_of(sound, k_largest), "its index covers"));
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{k_entry_min_bytes} - 1, std::uint64_t{k_entry_max_bytes} + 1,
        k_largest, k_largest - slots[2].offset + 1}) {
    CAPTURE(size);
    slots = sound;
    slots[2].size_bytes = size;
    CHECK(contains(problem_of(slots, end_of(slots)), "an entry of"));
  }
  for (const std::uint64_t offset :
       {std::uint64_t{0}, sound[1].offset - 1, sound[1].offset + 1, end, k_largest}) {
    CAPTURE(offset);
    slots = sound;
    slots[1].offset = offset;
    CHECK(contains(problem_of(slots, end), "do not follow one another"));
  }
  slots = sound;
  for (BundleSlot& slot : slots) ++slot.offset;  // a gap after the index
  CHECK(contains(problem_of(slots, end + 1), "do not follow one another"));
}

TEST_CASE("F4: A header that lies about itself is refused, also under a right checksum") {
  const auto slots = sound_slots(1);
  auto head = encode_bundle_index(slots);
  SUBCASE("reserved bytes in use") {
    poke(head, k_reserved_at, std::uint16_t{1});
  }
  SUBCASE("longer header") {
    poke(head, k_header_len_at, std::uint32_t{48});
  }
  SUBCASE("header past the end") {
    poke(head, k_header_len_at, std::numeric_limits<std::uint32_t>::max());
  }
  reseal(head);
  CHECK(contains(decode_bundle_index(head, end_of(slots)).problem, "its header contradicts its version"));
  CHECK_FALSE(bundle_index_end(head));
}

TEST_CASE("An index that is unsorted, or has a digest twice, is refused") {
  auto slots = sound_slots(3);
  SUBCASE("twice") {
    slots[1].digest = slots[0].digest;
  }
  SUBCASE("descending in the low half") {
    std::swap(slots[0].digest, slots[1].digest);
  }
  SUBCASE("descending in the high half") {
    slots[1].digest = {7, 0};
  }
  CHECK(contains(problem_of(slots, end_of(slots)), "is unsorted"));
}

TEST_CASE("F7: A bundle file of a newer format version is told from a damaged one") {
  const auto slots = sound_slots(1);
  auto head = encode_bundle_index(slots);
  poke(head, k_version_at, std::uint16_t{2});
  CHECK(decode_bundle_index(head, end_of(slots)).problem ==
        "is of a newer format version (2, and this jitsmith reads 1)");
  CHECK_FALSE(bundle_index_end(head));
  poke(head, k_version_at, std::uint16_t{65535});
  head.resize(10);  // of a shape that nobody knows yet
  CHECK(contains(decode_bundle_index(head, 10).problem, "newer format version"));
}

TEST_CASE("F7: Version 0 of a bundle file, which never was, is damage") {
  const auto slots = sound_slots(1);
  auto head = encode_bundle_index(slots);
  poke(head, k_version_at, std::uint16_t{0});
  reseal(head);
  CHECK(contains(decode_bundle_index(head, end_of(slots)).problem, "is damaged"));
}

TEST_CASE("2^20 entries are the most of a bundle, on both sides") {
  auto slots = sound_slots(k_bundle_max_entries);
  CHECK(decode_bundle_index(encode_bundle_index(slots), end_of(slots)).slots.size() == k_bundle_max_entries);
  slots.push_back(slots.back());
  CHECK(encode_bundle_index(slots).empty());
}

TEST_SUITE_END();
