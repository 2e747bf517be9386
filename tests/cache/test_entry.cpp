#include "samples.hpp"

#include <jitsmith/cache/entry.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

constexpr std::size_t k_version_at = 8, k_kind_at = 10, k_codec_at = 11, k_header_len_at = 12,
                      k_meta_len_at = 16, k_payload_len_at = 20, k_digest_at = 28, k_checksum_at = 44;

template <class Integer>
void poke(std::vector<std::byte>& file, std::size_t at, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    file.at(at + i) = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

// Makes the checksum right again, so that the checks behind it are reached.
void reseal(std::vector<std::byte>& file) {
  poke(file, k_checksum_at, std::uint64_t{0});
  poke(file, k_checksum_at + 8, std::uint64_t{0});
  const Digest checksum = digest_of({reinterpret_cast<const char*>(file.data()), file.size()});
  poke(file, k_checksum_at, checksum.high);
  poke(file, k_checksum_at + 8, checksum.low);
}

}  // namespace

TEST_SUITE_BEGIN("Entry");

TEST_CASE("Comes back as it was") {
  Entry entry = sample_entry();
  SUBCASE("cubin") {}
  SUBCASE("host object") {
    entry.kind = EntryKind::host_object;
  }
  SUBCASE("zero bytes and line ends in the texts") {
    entry.key_text = std::string("a\0b\r\n\x1a\xff", 7);
  }
  SUBCASE("no facts") {
    entry.facts.clear();
  }
  SUBCASE("empty in all parts") {
    entry = {};
  }
  SUBCASE("one megabyte") {
    entry.payload = elf_payload(std::size_t{1} << 20);
  }
  const auto decoded = decode(encode(entry));
  REQUIRE(decoded.entry);
  CHECK(*decoded.entry == entry);
  CHECK(decoded.fault == DecodeFault::none);
}

TEST_CASE("Equal entries have equal bytes") {
  CHECK(encode(sample_entry()) == encode(sample_entry()));
}

TEST_CASE("F7: The golden file of version 1 stays readable and is still what we write") {
  const std::filesystem::path path =
      std::filesystem::path(JITSMITH_TEST_SOURCE_DIR) / "tests/golden/entry.v1.bin";
  const auto golden = read_bytes(path);
  REQUIRE(!golden.empty());
  Entry expected{
      EntryKind::cubin, "format=1\ntemplate=golden\narch=sm_90a\n", "lowered=_Z6goldenPf\nregisters=8\n", {}};
  for (int i = 0; i < 300; ++i) expected.payload.push_back(static_cast<std::byte>(i * 7));
  const auto decoded = decode(golden);
  REQUIRE(decoded.entry);
  CHECK(*decoded.entry == expected);
  CHECK(encode(expected) == golden);
}

TEST_CASE("F1: Truncated at any length it is damaged") {
  const auto file = encode(sample_entry());
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto decoded = decode(std::span(file).first(length));
    REQUIRE_FALSE(decoded.entry);
    REQUIRE(is_damage(decoded.fault));
  }
}

TEST_CASE("F2: With any bit flipped it does not decode") {
  const auto file = encode(sample_entry());
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = file;
      flipped[at] ^= static_cast<std::byte>(1 << bit);
      REQUIRE_FALSE(decode(flipped).entry);
    }
  }
}

TEST_CASE("F3: What a power cut or a bad copy leaves does not decode") {
  const auto file = encode(sample_entry());
  auto bad = file;
  SUBCASE("one byte more") {
    bad.push_back(std::byte{0});
  }
  SUBCASE("twice the file") {
    bad.insert(bad.end(), file.begin(), file.end());
  }
  SUBCASE("all zeros") {
    std::ranges::fill(bad, std::byte{0});
  }
  SUBCASE("zeros from the middle on") {
    std::fill(bad.begin() + 80, bad.end(), std::byte{0});
  }
  SUBCASE("another entry's tail") {
    auto other = sample_entry();
    other.payload = elf_payload(100, 0x11);
    const auto other_file = encode(other);
    std::copy(other_file.begin() + 100, other_file.end(), bad.begin() + 100);
  }
  SUBCASE("old content with the length of a longer one") {
    bad.resize(bad.size() + 4096);
  }
  SUBCASE("line ends converted") {
    bad.erase(bad.begin() + 4);
  }
  const auto decoded = decode(bad);
  CHECK_FALSE(decoded.entry);
  CHECK(is_damage(decoded.fault));
}

TEST_CASE("F4: Lying lengths are refused, also under a right checksum") {
  auto file = encode(sample_entry());
  const auto refused = [&] {
    reseal(file);
    const auto decoded = decode(file);
    REQUIRE_FALSE(decoded.entry);
    REQUIRE(decoded.fault == DecodeFault::bad_length);
  };
  for (const std::uint32_t value : {0u, 59u, 61u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    file = encode(sample_entry());
    poke(file, k_header_len_at, value);
    refused();
    file = encode(sample_entry());
    poke(file, k_meta_len_at, value);
    refused();
    for (const std::size_t text_len_at :
         {k_entry_header_bytes, k_entry_header_bytes + 4 + sample_entry().key_text.size()}) {
      file = encode(sample_entry());
      poke(file, text_len_at, value);
      refused();
    }
  }
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{0} - 200}) {
    file = encode(sample_entry());
    poke(file, k_payload_len_at, value);
    refused();
  }
  // meta_len + payload_len wraps round to the right sum.
  file = encode(sample_entry());
  poke(file, k_meta_len_at, 0xffffffffu);
  poke(file, k_payload_len_at, static_cast<std::uint64_t>(file.size()) - k_entry_header_bytes - 0xffffffffu);
  refused();
  // The boundary between meta and payload moved, the sum kept.
  file = encode(sample_entry());
  const auto meta_len =
      static_cast<std::uint32_t>(8 + sample_entry().key_text.size() + sample_entry().facts.size());
  poke(file, k_meta_len_at, meta_len + 1);
  poke(file, k_payload_len_at, std::uint64_t{99});
  refused();
}

TEST_CASE("F4: A text that is one byte longer or shorter than it says is refused") {
  const Entry entry{EntryKind::cubin, "key", "facts", {}};
  const auto good = encode(entry);
  for (const std::size_t text_len_at :
       {k_entry_header_bytes, k_entry_header_bytes + 4 + entry.key_text.size()}) {
    for (const int change : {1, -1}) {
      auto file = good;
      const int length = std::to_integer<int>(file.at(text_len_at));
      poke(file, text_len_at, static_cast<std::uint8_t>(length + change));
      reseal(file);
      CHECK(decode(file).fault == DecodeFault::bad_length);
    }
  }
}

TEST_CASE("F7: Versions, kinds and codecs of later times are no damage") {
  auto file = encode(sample_entry());
  DecodeFault expected{};
  std::string described;
  SUBCASE("version 2") {
    poke(file, k_version_at, std::uint16_t{2});
    expected = DecodeFault::newer_version;
    described = "newer format 2";
  }
  SUBCASE("version 65535, of unknown shape") {
    poke(file, k_version_at, std::uint16_t{65535});
    file.resize(11);
    expected = DecodeFault::newer_version;
    described = "newer format 65535";
  }
  SUBCASE("kind") {
    poke(file, k_kind_at, std::uint8_t{3});
    reseal(file);
    expected = DecodeFault::unknown_kind;
    described = "unknown kind 3";
  }
  SUBCASE("codec") {
    poke(file, k_codec_at, std::uint8_t{1});
    reseal(file);
    expected = DecodeFault::unknown_codec;
    described = "unknown codec 1";
  }
  const auto decoded = decode(file);
  CHECK_FALSE(decoded.entry);
  CHECK(decoded.fault == expected);
  CHECK_FALSE(is_damage(decoded.fault));
  CHECK(describe_fault(decoded) == described);
}

TEST_CASE("F7: Version 0, which never was, is damage") {
  auto file = encode(sample_entry());
  poke(file, k_version_at, std::uint16_t{0});
  reseal(file);
  CHECK(decode(file).fault == DecodeFault::bad_version);
  CHECK(is_damage(DecodeFault::bad_version));
}

TEST_CASE("The digest must be that of the key") {
  auto file = encode(sample_entry());
  file.at(k_digest_at) ^= std::byte{1};
  reseal(file);
  CHECK(decode(file).fault == DecodeFault::bad_digest);
}

TEST_CASE("64 MiB is the largest entry, on both sides") {
  Entry entry{EntryKind::cubin, "k", "", {}};
  entry.payload = elf_payload(k_entry_max_bytes - k_entry_min_bytes - 1);
  CHECK_FALSE(unfit_to_store(entry));
  auto file = encode(entry);
  REQUIRE(file.size() == k_entry_max_bytes);
  CHECK(decode(file).entry == entry);
  file.push_back(std::byte{0});
  CHECK(decode(file).fault == DecodeFault::too_large);
  entry.payload.push_back(std::byte{0});
  CHECK(unfit_to_store(entry));
  CHECK(encode(entry).empty());
}

TEST_CASE("What is not an ELF image is unfit to store") {
  Entry entry = sample_entry();
  CHECK_FALSE(unfit_to_store(entry));
  SUBCASE("empty payload") {
    entry.payload.clear();
  }
  SUBCASE("shorter than the magic") {
    entry.payload.resize(3);
  }
  SUBCASE("text") {
    entry.payload.at(1) = std::byte{'e'};
  }
  SUBCASE("no key") {
    entry.key_text.clear();
  }
  CHECK(unfit_to_store(entry));
}

TEST_SUITE_END();
