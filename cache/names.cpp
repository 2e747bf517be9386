#include <jitsmith/cache/names.hpp>

#include <fmt/format.h>
#include <sys/random.h>

namespace jitsmith {
namespace {

constexpr std::string_view k_entry_suffix = ".jse";
constexpr std::string_view k_temporary_prefix = ".t-";

}  // namespace

unsigned shard_of(const Digest& digest) {
  return static_cast<unsigned>(digest.high >> 56);
}

std::string shard_name(unsigned shard) {
  return fmt::format("{:02x}", shard);
}

std::string shard_name(const Digest& digest) {
  return shard_name(shard_of(digest));
}

std::string entry_name(const Digest& digest) {
  return fmt::format("{}{}", digest.hex(), k_entry_suffix);
}

std::optional<Digest> parse_entry_name(std::string_view name) {
  if (!name.ends_with(k_entry_suffix)) return std::nullopt;
  return Digest::from_hex(name.substr(0, name.size() - k_entry_suffix.size()));
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(k_temporary_prefix) &&
         Digest::from_hex(name.substr(k_temporary_prefix.size())).has_value();
}

std::optional<std::string> random_temporary_name() {
  Digest bits;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits))
    return std::nullopt;
  return fmt::format("{}{}", k_temporary_prefix, bits.hex());
}

}  // namespace jitsmith
