// Bundles over a file system that fails where it is told to, and bundle files put together by hand.
#pragma once

#include "../support/faulty_file_system.hpp"
#include "../support/temp_dir.hpp"
#include "samples.hpp"

#include <jitsmith/cache/bundle.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace jitsmith::test {

template <class Integer>
void poke(std::vector<std::byte>& bytes, std::size_t at, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes.at(at + i) = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}

// The number decides key and payload, so that a wrong one is told from a right one.
inline Entry bundled_entry(int number) {
  Entry entry = sample_entry(fmt::format("bundled={}\n", number));
  entry.payload = elf_payload(40 + static_cast<std::size_t>(number), static_cast<unsigned char>(number));
  return entry;
}

using SlotBytes = std::pair<Digest, std::vector<std::byte>>;

inline SlotBytes slot_of(const Entry& entry) {
  return {digest_of(entry.key_text), encode(entry)};
}

inline const std::vector<Entry>& three_entries() {
  static const std::vector<Entry> entries = {bundled_entry(1), bundled_entry(2), bundled_entry(3)};
  return entries;
}

inline std::vector<SlotBytes> three_slots() {
  std::vector<SlotBytes> slots;
  for (const Entry& entry : three_entries()) slots.push_back(slot_of(entry));
  std::ranges::sort(slots, {}, &SlotBytes::first);
  return slots;
}

// A bundle file with a right index over any bytes, in the given order.
inline std::vector<std::byte> assemble(const std::vector<SlotBytes>& parts) {
  std::vector<BundleSlot> slots;
  std::uint64_t offset = k_bundle_header_bytes + parts.size() * k_bundle_index_bytes;
  for (const auto& [digest, bytes] : parts) {
    slots.push_back({digest, offset, bytes.size()});
    offset += bytes.size();
  }
  std::vector<std::byte> file = encode_bundle_index(slots);
  for (const auto& [digest, bytes] : parts) file.insert(file.end(), bytes.begin(), bytes.end());
  return file;
}

struct BundleBench {
  Bundle open(const std::string& at) { return {CacheContext{faulty, clock, counters, events}, at}; }
  Bundle open() { return open(path); }

  // Writes a bundle file of these entries.
  void write(const std::vector<Entry>& entries) const {
    BundleWriter writer;
    for (const Entry& entry : entries) REQUIRE(writer.add(entry));
    REQUIRE(writer.write(real_file_system(), path) == 0);
  }
  // The same of bytes, which need not be sound.
  void write(const std::vector<std::byte>& bytes) const {
    write_bytes(path, bytes);
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
  }

  CacheStats stats() const { return counters.snapshot(); }

  TempDir temp;
  std::string path = temp / "bundle.jsb";
  FaultyFileSystem faulty;
  TestClock clock;
  CacheCounters counters;
  std::vector<std::string> told;
  EventSink events = [this](const Event& event) {
    told.push_back(std::string(event.what) + ": " + event.text);
  };
};

inline std::optional<Entry> get(Bundle& bundle, const Entry& entry) {
  return bundle.get(entry.key_text, digest_of(entry.key_text));
}

// Every entry that is served must be right; the number that is.
inline int served_right(Bundle& bundle) {
  int served = 0;
  for (const Entry& entry : three_entries()) {
    const auto got = get(bundle, entry);
    if (got) REQUIRE(*got == entry);
    served += got ? 1 : 0;
  }
  return served;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace jitsmith::test
