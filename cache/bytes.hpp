// Bytes of the file formats, put together and taken apart: little-endian integers, digests, texts. Entry and
// bundle share it. Nothing here knows a format.
#pragma once

#include <jitsmith/cache/digest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitsmith {

using FileMagic = std::array<std::uint8_t, 8>;

class ByteWriter {
 public:
  explicit ByteWriter(std::size_t size) { bytes_.reserve(size); }

  template <class Integer>
  void put(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
  }
  void put(const Digest& digest) {
    put(digest.high);
    put(digest.low);
  }
  void put(const FileMagic& magic) {
    for (const std::uint8_t byte : magic) put(byte);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what the caller has checked to be there, except for texts, which say whether they fit.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class Integer>
  Integer integer() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      value |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    rest_ = rest_.subspan(sizeof(Integer));
    return static_cast<Integer>(value);
  }
  Digest digest() {
    const auto high = integer<std::uint64_t>();
    return {high, integer<std::uint64_t>()};
  }
  std::optional<std::string> text() {
    if (rest_.size() < sizeof(std::uint32_t)) return std::nullopt;
    const std::size_t size = integer<std::uint32_t>();
    if (rest_.size() < size) return std::nullopt;
    std::string result(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return result;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

template <std::size_t N>
bool starts_with(std::span<const std::byte> bytes, const std::array<std::uint8_t, N>& magic) {
  return bytes.size() >= N &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](std::uint8_t a, std::byte b) { return a == std::to_integer<std::uint8_t>(b); });
}

inline constexpr std::size_t k_checksum_bytes = 16;

// The checksum of bytes that hold it themselves, at `offset`: there they count as zero.
inline Digest checksum_around(std::span<const std::byte> bytes, std::size_t offset) {
  static constexpr std::array<std::byte, k_checksum_bytes> k_zeros{};
  return digest_of_parts({bytes.first(offset), k_zeros, bytes.subspan(offset + k_checksum_bytes)});
}

// Puts that checksum in its place.
inline void seal(std::span<std::byte> bytes, std::size_t offset) {
  ByteWriter checksum(k_checksum_bytes);
  checksum.put(checksum_around(bytes, offset));
  std::ranges::copy(std::move(checksum).take(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

}  // namespace jitsmith
