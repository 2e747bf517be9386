#include <jitsmith/cache/bundle_file.hpp>

#include <jitsmith/cache/listing.hpp>
#include <jitsmith/cache/whole_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace jitsmith {
namespace {

// Less the umask, and never more: a reader refuses a bundle that others can write.
constexpr mode_t k_mode = 0644;

}  // namespace

// --- writing -----------------------------------------------------------------------------------------------

bool BundleWriter::add(const Entry& entry) {
  if (unfit_to_store(entry)) return false;
  entries_[digest_of(entry.key_text)] = encode(entry);
  return true;
}

std::uint64_t BundleWriter::bytes() const {
  std::uint64_t bytes = k_bundle_header_bytes;
  for (const auto& [digest, encoded] : entries_) bytes += k_bundle_index_bytes + encoded.size();
  return bytes;
}

int BundleWriter::write(FileSystem& fs, const std::string& file) const {
  std::vector<BundleSlot> slots;
  std::vector<std::span<const std::byte>> parts(1);  // the first is for header and index
  std::uint64_t offset = k_bundle_header_bytes + entries_.size() * k_bundle_index_bytes;
  for (const auto& [digest, encoded] : entries_) {
    slots.push_back({digest, offset, encoded.size()});
    parts.emplace_back(encoded);
    offset += encoded.size();
  }
  const std::vector<std::byte> head = encode_bundle_index(slots);
  if (head.empty()) return EFBIG;
  parts.front() = head;
  return replace_whole(fs, file, parts, k_mode);
}

// --- reading -----------------------------------------------------------------------------------------------

BundleFile::BundleFile(const CacheContext& context, Descriptor file, std::vector<BundleSlot> slots,
                       std::chrono::system_clock::time_point modified, std::string path)
    : context_(context),
      file_(std::move(file)),
      slots_(std::move(slots)),
      known_bad_(slots_.size()),
      modified_(modified),
      path_(std::move(path)) {}

std::optional<Entry> BundleFile::get(std::string_view key_text, const Digest& digest) {
  const auto slot = std::ranges::lower_bound(slots_, digest, {}, &BundleSlot::digest);
  if (slot == slots_.end() || slot->digest != digest) return std::nullopt;
  const auto index = static_cast<std::size_t>(slot - slots_.begin());
  if (known_bad_[index].load(std::memory_order_relaxed)) {
    context_.counters.add(&CacheStats::known_bad);
    return std::nullopt;
  }
  Read found = read(*slot);
  if (found.error != 0) {
    note_unreadable(digest, found.error);
  } else if (!found.decoded.entry) {
    note_undecodable(index, found.decoded);
  } else if (found.decoded.entry->key_text != key_text) {
    note_mismatched(index, *found.decoded.entry);
  } else {
    return std::move(found.decoded.entry);
  }
  return std::nullopt;
}

void BundleFile::list(const EntryVisitor& visit) const {
  for (const BundleSlot& slot : slots_) {
    Read found = read(slot);
    ListedEntry listed;
    listed.digest = slot.digest;
    listed.size_bytes = slot.size_bytes;
    listed.last_used = modified_;
    if (found.error != 0)
      listed.problem = message_of_errno(found.error);
    else
      set_content(listed, std::move(found.decoded), "stored under the digest of another key");
    visit(listed);
  }
}

BundleFile::Read BundleFile::read(const BundleSlot& slot) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(slot.size_bytes));
  const ssize_t got = context_.file_system.read_full_at(file_.get(), bytes, slot.offset);
  if (got < 0) return {{}, static_cast<int>(-got)};
  bytes.resize(static_cast<std::size_t>(got));  // less when the file shrank meanwhile, which decode notices
  return {decode(bytes), 0};
}

void BundleFile::note_unreadable(const Digest& digest, int error) const {
  context_.counters.add(&CacheStats::read_failed, error);
  context_.tell(EventLevel::info, "bundle.read_failed",
                fmt::format("entry {} of the bundle {} cannot be read ({}), so this bundle is passed over",
                            digest.hex(), path_, message_of_errno(error)));
}

void BundleFile::note_undecodable(std::size_t index, const Decoded& decoded) {
  if (!set_known_bad(index)) return;
  const std::string digest = slots_[index].digest.hex();
  if (!is_damage(decoded.fault)) {
    context_.counters.add(&CacheStats::bundle_mismatched);
    context_.tell(
        EventLevel::info, "bundle.mismatched",
        fmt::format("entry {} of the bundle {} is of a later version of jitsmith ({}) and is passed "
                    "over; make the bundle again with this one",
                    digest, path_, describe_fault(decoded)));
    return;
  }
  context_.counters.add(&CacheStats::bundle_corrupt);
  context_.tell(
      EventLevel::warning, "bundle.corrupt",
      fmt::format("entry {} of the bundle {} is damaged ({}) and is passed over from now on; copy or "
                  "make the bundle again",
                  digest, path_, describe_fault(decoded)));
}

void BundleFile::note_mismatched(std::size_t index, const Entry& found) {
  // Two keys with one digest: the entry is good for the other. But when its digest is not even that of its
  // own key, it is good for nobody.
  const Digest& digest = slots_[index].digest;
  if (digest_of(found.key_text) != digest && !set_known_bad(index)) return;
  context_.counters.add(&CacheStats::bundle_mismatched);
  context_.tell(EventLevel::info, "bundle.mismatched",
                fmt::format("entry {} of the bundle {} belongs to another key and is passed over",
                            digest.hex(), path_));
}

bool BundleFile::set_known_bad(std::size_t index) {
  return !known_bad_[index].exchange(true, std::memory_order_relaxed);
}

}  // namespace jitsmith
