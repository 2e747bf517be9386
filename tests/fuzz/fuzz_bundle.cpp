// F43: decoding a bundle file, index and entries. No input crashes it; what decodes, index and entries, is
// written again as the very same bytes.
#include "reseal.hpp"

#include <jitsmith/cache/bundle_file.hpp>

#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace jitsmith;

namespace {

// As Bundle reads a file: the header, the head that it announces, then each entry from its place.
std::vector<BundleSlot> read_index(std::span<const std::byte> file) {
  std::span<const std::byte> head = file.first(std::min(file.size(), k_bundle_header_bytes));
  if (const auto end = bundle_index_end(head); end && *end <= file.size())
    head = file.first(static_cast<std::size_t>(*end));
  DecodedBundleIndex index = decode_bundle_index(head, file.size());
  if (!index.problem.empty()) {
    if (!index.slots.empty()) std::abort();
    return {};
  }
  if (!std::ranges::equal(encode_bundle_index(index.slots), head)) std::abort();
  return std::move(index.slots);
}

void check(std::span<const std::byte> file) {
  for (const BundleSlot& slot : read_index(file)) {
    // The index has decoded: a slot out of bounds would be found by the sanitizer here.
    const auto bytes =
        file.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.size_bytes));
    const Decoded decoded = decode(bytes);
    if (decoded.entry && !std::ranges::equal(encode(*decoded.entry), bytes)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  check(input);
  std::vector<std::byte> sealed(input.begin(), input.end());
  fuzz::reseal_bundle(sealed);
  for (const BundleSlot& slot : read_index(sealed))
    fuzz::reseal_entry(std::span(sealed).subspan(static_cast<std::size_t>(slot.offset),
                                                 static_cast<std::size_t>(slot.size_bytes)));
  check(sealed);
  return 0;
}
