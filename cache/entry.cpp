#include <jitsmith/cache/entry.hpp>

#include <jitsmith/cache/bytes.hpp>
#include <jitsmith/cache/digest.hpp>

#include <fmt/format.h>

#include <array>

namespace jitsmith {
namespace {

constexpr FileMagic k_entry_magic = {0x89, 'J', 'S', 'E', '\r', '\n', 0x1a, '\n'};
constexpr std::uint16_t k_entry_version = 1;
constexpr std::uint8_t k_codec_stored = 0;
constexpr std::size_t k_entry_checksum_offset = 44;
constexpr std::array<std::uint8_t, 4> k_elf_magic = {0x7f, 'E', 'L', 'F'};

std::uint64_t meta_bytes(const Entry& entry) {
  return 2 * sizeof(std::uint32_t) + entry.key_text.size() + entry.facts.size();
}

std::uint64_t encoded_bytes(const Entry& entry) {
  return k_entry_header_bytes + meta_bytes(entry) + entry.payload.size();
}

Decoded fail(DecodeFault fault, unsigned unknown = 0) {
  return {std::nullopt, fault, unknown};
}

std::string_view to_string(DecodeFault fault) {
  switch (fault) {
    case DecodeFault::none:
      return "none";
    case DecodeFault::too_short:
      return "too short";
    case DecodeFault::too_large:
      return "too large";
    case DecodeFault::bad_magic:
      return "not an entry";
    case DecodeFault::newer_version:
      return "newer format";
    case DecodeFault::unknown_kind:
      return "unknown kind";
    case DecodeFault::unknown_codec:
      return "unknown codec";
    case DecodeFault::bad_version:
      return "bad format version";
    case DecodeFault::bad_length:
      return "lengths do not add up";
    case DecodeFault::bad_checksum:
      return "wrong checksum";
    case DecodeFault::bad_digest:
      return "digest is not that of the key";
  }
  return "unknown";
}

}  // namespace

std::optional<std::string_view> unfit_to_store(const Entry& entry) {
  if (entry.key_text.empty()) return "it has no key";
  if (!starts_with(entry.payload, k_elf_magic)) return "its payload is not an ELF image";
  if (encoded_bytes(entry) > k_entry_max_bytes) return "it is larger than 64 MiB";
  return std::nullopt;
}

std::vector<std::byte> encode(const Entry& entry) {
  const std::uint64_t size = encoded_bytes(entry);
  if (size > k_entry_max_bytes) return {};
  ByteWriter writer(size);
  writer.put(k_entry_magic);
  writer.put(k_entry_version);
  writer.put(static_cast<std::uint8_t>(entry.kind));
  writer.put(k_codec_stored);
  writer.put(static_cast<std::uint32_t>(k_entry_header_bytes));
  writer.put(static_cast<std::uint32_t>(meta_bytes(entry)));
  writer.put(static_cast<std::uint64_t>(entry.payload.size()));
  writer.put(digest_of(entry.key_text));
  writer.put(Digest{});  // the checksum, zero while it is computed
  writer.put_text(entry.key_text);
  writer.put_text(entry.facts);
  writer.put_bytes(entry.payload);
  auto file = std::move(writer).take();
  seal(file, k_entry_checksum_offset);
  return file;
}

Decoded decode(std::span<const std::byte> file) {
  // Magic and version first: they alone are promised to keep their place in later versions.
  if (file.size() < k_entry_magic.size() + sizeof k_entry_version) return fail(DecodeFault::too_short);
  if (!starts_with(file, k_entry_magic)) return fail(DecodeFault::bad_magic);
  ByteReader header(file.subspan(k_entry_magic.size()));
  const auto version = header.integer<std::uint16_t>();
  if (version > k_entry_version) return fail(DecodeFault::newer_version, version);
  if (version != k_entry_version) return fail(DecodeFault::bad_version);
  if (file.size() < k_entry_min_bytes) return fail(DecodeFault::too_short);
  if (file.size() > k_entry_max_bytes) return fail(DecodeFault::too_large);

  const auto kind = header.integer<std::uint8_t>();
  const auto codec = header.integer<std::uint8_t>();
  const auto header_len = header.integer<std::uint32_t>();
  const auto meta_len = header.integer<std::uint32_t>();
  const auto payload_len = header.integer<std::uint64_t>();
  const auto digest = header.digest();
  const auto checksum = header.digest();

  // Subtract from the known size instead of adding declared ones, which could wrap round.
  const std::uint64_t body = file.size() - k_entry_header_bytes;
  if (header_len != k_entry_header_bytes || meta_len > body || payload_len != body - meta_len) {
    return fail(DecodeFault::bad_length);
  }
  if (checksum != checksum_around(file, k_entry_checksum_offset)) return fail(DecodeFault::bad_checksum);

  // From here on the file is what some jitsmith wrote.
  if (codec != k_codec_stored) return fail(DecodeFault::unknown_codec, codec);
  if (kind != static_cast<std::uint8_t>(EntryKind::cubin) &&
      kind != static_cast<std::uint8_t>(EntryKind::host_object)) {
    return fail(DecodeFault::unknown_kind, kind);
  }
  ByteReader meta(file.subspan(k_entry_header_bytes, meta_len));
  auto key_text = meta.text();
  auto facts = meta.text();
  if (!key_text || !facts || !meta.at_end()) return fail(DecodeFault::bad_length);
  if (digest != digest_of(*key_text)) return fail(DecodeFault::bad_digest);

  const auto payload = file.subspan(k_entry_header_bytes + meta_len);
  return {Entry{static_cast<EntryKind>(kind), std::move(*key_text), std::move(*facts),
                std::vector<std::byte>(payload.begin(), payload.end())}};
}

bool is_damage(DecodeFault fault) {
  switch (fault) {
    case DecodeFault::none:
    case DecodeFault::newer_version:
    case DecodeFault::unknown_kind:
    case DecodeFault::unknown_codec:
      return false;
    default:
      return true;
  }
}

std::string_view to_string(EntryKind kind) {
  switch (kind) {
    case EntryKind::cubin:
      return "cubin";
    case EntryKind::host_object:
      return "host_object";
  }
  return "unknown";
}

std::string describe_fault(const Decoded& decoded) {
  const std::string_view name = to_string(decoded.fault);
  return is_damage(decoded.fault) ? std::string(name) : fmt::format("{} {}", name, decoded.unknown);
}

}  // namespace jitsmith
