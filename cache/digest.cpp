#include <jitsmith/cache/digest.hpp>

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <new>

namespace jitsmith {
namespace {

Digest from_xxh(const XXH128_hash_t& hash) {
  return {hash.high64, hash.low64};
}

std::optional<std::uint64_t> parse_half(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    std::uint64_t nibble = 0;
    if (digit >= '0' && digit <= '9') {
      nibble = static_cast<std::uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      nibble = static_cast<std::uint64_t>(digit - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value << 4 | nibble;
  }
  return value;
}

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = parse_half(text.substr(0, 16));
  const auto low = parse_half(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Digest{*high, *low};
}

Digest digest_of(std::string_view bytes) {
  return from_xxh(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of_parts(std::initializer_list<std::span<const std::byte>> parts) {
  // The state comes from the library, which knows its size and alignment whatever version is loaded.
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              &XXH3_freeState);
  if (!state || XXH3_128bits_reset(state.get()) != XXH_OK) throw std::bad_alloc();
  for (const auto part : parts) XXH3_128bits_update(state.get(), part.data(), part.size());
  return from_xxh(XXH3_128bits_digest(state.get()));
}

}  // namespace jitsmith
