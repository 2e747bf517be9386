// A bundle in one file: an index and the entries, each in the form of entry.hpp. Equal sets of entries give
// equal bytes, whatever their order, time and place.
//
// All integers are little-endian; there is no padding.
//
//   file       = header index entries          (nothing after it)
//   header     = magic version reserved header_len count checksum
//   magic      = 89 4A 53 42 0D 0A 1A 0A       ("\x89JSB\r\n\x1a\n")
//   version    = u16                           (1)
//   reserved   = u16                           (0)
//   header_len = u32                           (40)
//   count      = u64                           (entries)
//   checksum   = u64 u64                       (high, low: XXH3-128 of header and index, these 16 bytes zero)
//   index      = { digest offset size }        (ascending by digest, each digest once)
//   digest     = u64 u64                       (high, low: XXH3-128 of the entry's key text)
//   offset     = u64                           (from the start of the file: the entries lie in the order of
//                                               the index without gaps, the first right after the index)
//   size       = u64                           (as bounded in entry.hpp)
//   entries    = { entry }                     (each has its own checksum, checked when it is read)
//
// Version history
//   1  first version
#pragma once

#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/listed_entry.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

inline constexpr std::size_t k_bundle_header_bytes = 40;
inline constexpr std::size_t k_bundle_index_bytes = 32;  // an entry of the index

// A damaged header can make a reader allocate an index of this many entries, 32 MiB, and no more.
inline constexpr std::uint64_t k_bundle_max_entries = 1 << 20;

struct BundleSlot {
  Digest digest;
  std::uint64_t offset = 0, size_bytes = 0;

  friend bool operator==(const BundleSlot&, const BundleSlot&) = default;
};

struct DecodedBundleIndex {
  std::vector<BundleSlot> slots;
  std::string problem;  // a predicate: "is damaged (wrong checksum)"; empty when all is well
};

// The bytes of header and index that a reader needs to see, from the header alone; nothing when it is no
// sound header or asks for more than k_bundle_max_entries.
std::optional<std::uint64_t> bundle_index_end(std::span<const std::byte> header);

// `head` = header and index, or as much as there is of them; `file_bytes` = the size of the whole file. Pure;
// trusts nothing.
DecodedBundleIndex decode_bundle_index(std::span<const std::byte> head, std::uint64_t file_bytes);

// Header and index, the inverse of decode_bundle_index. Empty for more than k_bundle_max_entries.
std::vector<std::byte> encode_bundle_index(std::span<const BundleSlot> slots);

// Collects entries, and writes them as one file.
class BundleWriter {
 public:
  // A second entry of the same digest replaces the first. False for an entry that is unfit to store.
  bool add(const Entry& entry);

  std::size_t size() const { return entries_.size(); }
  std::uint64_t bytes() const;  // of the file

  // Replaces `file` as a whole (whole_file.hpp), readable for all but writable for its owner only, as a
  // reader demands. Zero or an errno: EFBIG for more than k_bundle_max_entries.
  int write(FileSystem& file_system, const std::string& file) const;

 private:
  std::map<Digest, std::vector<std::byte>> entries_;  // encoded
};

// An opened bundle file. The index is in memory, entries are read as they are asked for. Thread safe, and
// usable in a forked child: no lock, and no use of the descriptor's position.
class BundleFile {
 public:
  // `slots` as decode_bundle_index gives them; `path` and `modified` are for messages and listings.
  BundleFile(const CacheContext& context, Descriptor file, std::vector<BundleSlot> slots,
             std::chrono::system_clock::time_point modified, std::string path);

  // The entry whose key text is `key_text`, verified. An entry that can't ever be served is counted and told
  // once, and not read again; one that only can't be read now is tried again.
  std::optional<Entry> get(std::string_view key_text, const Digest& digest);

  // Reads and verifies every entry, in order of digest. Counts nothing.
  void list(const EntryVisitor& visit) const;

 private:
  struct Read {
    Decoded decoded;
    int error = 0;  // errno, when it could not be read
  };

  Read read(const BundleSlot& slot) const;
  void note_unreadable(const Digest& digest, int error) const;
  void note_undecodable(std::size_t index, const Decoded& decoded);
  void note_mismatched(std::size_t index, const Entry& found);
  bool set_known_bad(std::size_t index);

  CacheContext context_;
  Descriptor file_;
  std::vector<BundleSlot> slots_;
  std::vector<std::atomic<bool>> known_bad_;  // beside the slots
  std::chrono::system_clock::time_point modified_;
  std::string path_;
};

}  // namespace jitsmith
