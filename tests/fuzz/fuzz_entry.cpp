// F43: decoding an entry. No input crashes it, and what decodes encodes to the very same bytes.
#include "reseal.hpp"

#include <jitsmith/cache/entry.hpp>

#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace jitsmith;

namespace {

void check(std::span<const std::byte> file) {
  const Decoded decoded = decode(file);
  if (decoded.entry.has_value() != (decoded.fault == DecodeFault::none)) std::abort();
  if (decoded.entry && !std::ranges::equal(encode(*decoded.entry), file)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  check(input);
  std::vector<std::byte> sealed(input.begin(), input.end());
  fuzz::reseal_entry(sealed);
  check(sealed);
  return 0;
}
