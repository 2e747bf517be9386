// Makes the checksums of mutated bytes right again: otherwise nearly no mutation gets past them, and what is
// behind them is never tried.
#pragma once

#include <jitsmith/cache/bundle_file.hpp>
#include <jitsmith/cache/bytes.hpp>
#include <jitsmith/cache/entry.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace jitsmith::fuzz {

inline constexpr std::size_t k_entry_digest_at = 28, k_entry_checksum_at = 44, k_bundle_checksum_at = 24;

inline void reseal_entry(std::span<std::byte> entry) {
  if (entry.size() < k_entry_min_bytes) return;
  const std::size_t key_at = k_entry_header_bytes + sizeof(std::uint32_t);
  const std::size_t key_len =
      ByteReader(entry.subspan(k_entry_header_bytes, sizeof(std::uint32_t))).integer<std::uint32_t>();
  if (key_len <= entry.size() - key_at) {
    const auto key = entry.subspan(key_at, key_len);
    ByteWriter digest(k_checksum_bytes);
    digest.put(digest_of(std::string_view(reinterpret_cast<const char*>(key.data()), key.size())));
    std::ranges::copy(std::move(digest).take(), entry.begin() + k_entry_digest_at);
  }
  seal(entry, k_entry_checksum_at);
}

inline void reseal_bundle(std::span<std::byte> file) {
  const auto end = bundle_index_end(file);
  if (end && *end <= file.size()) seal(file.first(static_cast<std::size_t>(*end)), k_bundle_checksum_at);
}

}  // namespace jitsmith::fuzz
