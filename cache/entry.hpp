// One cache entry, and its form on disk: encode and decode are pure functions over bytes.
//
// decode trusts nothing: it checks every length before it allocates, and hands out an entry only when the
// whole of it verifies. It must not know files, directories or what the texts mean.
//
// All integers are little-endian, written byte by byte; there is no padding.
//
//   file       = header meta payload           (nothing after it: the size of the file is part of the check)
//   header     = magic version kind codec header_len meta_len payload_len digest checksum
//   magic      = 89 4A 53 45 0D 0A 1A 0A       ("\x89JSE\r\n\x1a\n": text-mode and 7-bit copies break it)
//   version    = u16                           (1)
//   kind       = u8                            (EntryKind)
//   codec      = u8                            (0: payload stored as it is)
//   header_len = u32                           (60)
//   meta_len   = u32
//   payload_len= u64
//   digest     = u64 u64                       (high, low: XXH3-128 of key_text)
//   checksum   = u64 u64                       (high, low: XXH3-128 of the file with these 16 bytes zero)
//   meta       = key_len:u32 key_text facts_len:u32 facts
//   payload    = the machine code
//
// Version history
//   1  first version
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

// What the payload is. Stored on disk: numbers are never reused.
enum class EntryKind : std::uint8_t {
  cubin = 1,        // GPU machine code for one exact architecture
  host_object = 2,  // shared object for the CPU
};

std::string_view to_string(EntryKind kind);

struct Entry {
  EntryKind kind = EntryKind::cubin;
  std::string key_text;            // all that the payload depends on, readable; opaque here
  std::string facts;               // what a launch needs to know, readable; opaque here
  std::vector<std::byte> payload;  // an ELF image, for both kinds

  friend bool operator==(const Entry&, const Entry&) = default;
};

inline constexpr std::size_t k_entry_header_bytes = 60;
inline constexpr std::size_t k_entry_min_bytes = k_entry_header_bytes + 8;  // two empty texts, no payload

// Cubins are tens of kilobytes; 64 MiB bounds what a damaged or planted file can make a reader allocate.
inline constexpr std::size_t k_entry_max_bytes = std::size_t{64} << 20;

enum class DecodeFault : std::uint8_t {
  none,
  too_short,
  too_large,
  bad_magic,
  newer_version,  // this and the next two are sound entries of a later jitsmith: not ours to judge or remove
  unknown_kind,
  unknown_codec,
  bad_version,
  bad_length,
  bad_checksum,
  bad_digest,
};

// Whether the bytes are broken, as opposed to written by a later version.
bool is_damage(DecodeFault fault);

struct Decoded {
  std::optional<Entry> entry;
  DecodeFault fault = DecodeFault::none;
  unsigned unknown = 0;  // of a later jitsmith: the version, kind or codec that is not known here
};

// What is wrong without an entry: "wrong checksum", "newer format 2".
std::string describe_fault(const Decoded& decoded);

// Why an entry should not be stored, or nothing: no key, no ELF image as payload, or more than
// k_entry_max_bytes. A wrong but well-formed payload would be served again and again, so this is the last
// gate before the disk.
std::optional<std::string_view> unfit_to_store(const Entry& entry);

// Precondition: the entry is at most k_entry_max_bytes encoded; otherwise the result is empty.
std::vector<std::byte> encode(const Entry& entry);

Decoded decode(std::span<const std::byte> file);

}  // namespace jitsmith
