// The index of a bundle file as bytes: pure functions.
#include <jitsmith/cache/bundle_file.hpp>
#include <jitsmith/cache/bytes.hpp>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr FileMagic k_bundle_magic = {0x89, 'J', 'S', 'B', '\r', '\n', 0x1a, '\n'};
constexpr std::uint16_t k_bundle_version = 1;
constexpr std::size_t k_bundle_checksum_offset = 24;

DecodedBundleIndex fail(std::string problem) {
  return {{}, std::move(problem)};
}

std::uint64_t index_end(std::uint64_t count) {
  return k_bundle_header_bytes + count * k_bundle_index_bytes;
}

struct Header {
  std::uint64_t count = 0;
  Digest checksum;
};

// The header's fields, checked as far as they can be without the index.
struct DecodedHeader {
  Header header;
  std::string problem;
};

DecodedHeader decode_header(std::span<const std::byte> bytes) {
  // Magic and version first: they alone are promised to keep their place in later versions.
  if (bytes.size() < k_bundle_magic.size() + sizeof k_bundle_version || !starts_with(bytes, k_bundle_magic))
    return {{}, "is not a bundle file of jitsmith"};
  ByteReader reader(bytes.subspan(k_bundle_magic.size()));
  const auto version = reader.integer<std::uint16_t>();
  if (version > k_bundle_version) {
    return {{},
            fmt::format("is of a newer format version ({}, and this jitsmith reads {})", version,
                        k_bundle_version)};
  }
  if (version != k_bundle_version) return {{}, fmt::format("is damaged (format version {})", version)};
  if (bytes.size() < k_bundle_header_bytes) return {{}, "is damaged (its header is cut short)"};
  const auto reserved = reader.integer<std::uint16_t>();
  const auto header_len = reader.integer<std::uint32_t>();
  const auto count = reader.integer<std::uint64_t>();
  if (reserved != 0 || header_len != k_bundle_header_bytes)
    return {{}, "is damaged (its header contradicts its version)"};
  if (count > k_bundle_max_entries) {
    return {{},
            fmt::format("is damaged or too large ({} entries of at most {})", count, k_bundle_max_entries)};
  }
  return {{count, reader.digest()}, {}};
}

}  // namespace

std::optional<std::uint64_t> bundle_index_end(std::span<const std::byte> header) {
  const DecodedHeader decoded = decode_header(header);
  if (!decoded.problem.empty()) return std::nullopt;
  return index_end(decoded.header.count);
}

DecodedBundleIndex decode_bundle_index(std::span<const std::byte> head, std::uint64_t file_bytes) {
  DecodedHeader decoded = decode_header(head);
  if (!decoded.problem.empty()) return fail(std::move(decoded.problem));
  const auto [count, checksum] = decoded.header;
  if (head.size() < index_end(count)) return fail("is damaged (its index is cut short)");
  head = head.first(static_cast<std::size_t>(index_end(count)));
  if (checksum != checksum_around(head, k_bundle_checksum_offset)) return fail("is damaged (wrong checksum)");

  DecodedBundleIndex index;
  index.slots.reserve(static_cast<std::size_t>(count));
  ByteReader reader(head.subspan(k_bundle_header_bytes));
  std::uint64_t end = index_end(count);  // cannot wrap round: at most 2^20 sizes of at most 2^26 are added
  for (std::uint64_t i = 0; i < count; ++i) {
    BundleSlot slot;
    slot.digest = reader.digest();
    slot.offset = reader.integer<std::uint64_t>();
    slot.size_bytes = reader.integer<std::uint64_t>();
    if (i > 0 && slot.digest <= index.slots.back().digest) return fail("is damaged (its index is unsorted)");
    if (slot.size_bytes < k_entry_min_bytes || slot.size_bytes > k_entry_max_bytes)
      return fail(fmt::format("is damaged (an entry of {} bytes)", slot.size_bytes));
    if (slot.offset != end) return fail("is damaged (its entries do not follow one another)");
    end += slot.size_bytes;
    index.slots.push_back(slot);
  }
  if (end != file_bytes)
    return fail(fmt::format("is damaged ({} bytes long, and its index covers {})", file_bytes, end));
  return index;
}

std::vector<std::byte> encode_bundle_index(std::span<const BundleSlot> slots) {
  if (slots.size() > k_bundle_max_entries) return {};
  ByteWriter writer(static_cast<std::size_t>(index_end(slots.size())));
  writer.put(k_bundle_magic);
  writer.put(k_bundle_version);
  writer.put(std::uint16_t{0});  // reserved
  writer.put(static_cast<std::uint32_t>(k_bundle_header_bytes));
  writer.put(static_cast<std::uint64_t>(slots.size()));
  writer.put(Digest{});  // the checksum, zero while it is computed
  for (const BundleSlot& slot : slots) {
    writer.put(slot.digest);
    writer.put(slot.offset);
    writer.put(slot.size_bytes);
  }
  auto head = std::move(writer).take();
  seal(head, k_bundle_checksum_offset);
  return head;
}

}  // namespace jitsmith
