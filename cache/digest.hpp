// A 128-bit XXH3 digest: the address of an entry, and the checksum inside it.
//
// XXH3 is fast and well spread, but not a cryptographic hash: two texts with one digest can be crafted.
// Nothing here may therefore take equal digests for equal texts; the store compares the texts.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace jitsmith {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const Digest&, const Digest&) = default;

  // 32 lower-case hex digits, high half first; the usual printed form of XXH3-128.
  std::string hex() const;

  // The inverse of hex(). Upper case is refused, so that a digest has exactly one name on disk.
  static std::optional<Digest> from_hex(std::string_view text);
};

Digest digest_of(std::string_view bytes);

// The digest of the parts joined end to end, without joining them.
Digest digest_of_parts(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace jitsmith

template <>
struct std::hash<jitsmith::Digest> {
  std::size_t operator()(const jitsmith::Digest& digest) const noexcept {
    return static_cast<std::size_t>(digest.low);  // already well spread
  }
};
