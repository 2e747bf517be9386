#include <jitsmith/cache/store.hpp>

#include <jitsmith/cache/names.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace jitsmith {
namespace {

// Marking an entry as used costs a write of its inode; trimming by age needs no finer grain.
constexpr std::chrono::hours k_touch_interval{1};

bool is_same_file(const struct ::stat& a, const struct ::stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// What opening a symbolic link with O_NOFOLLOW gives, or a file in the place of a folder.
bool is_planted(int error) {
  return error == ELOOP || error == ENOTDIR;
}

}  // namespace

Store::Store(const CacheContext& context, Descriptor entries, StoreAccess access, const CacheLimits& limits)
    : context_(context), entries_(std::move(entries)), access_(access), limits_(limits), usage_(limits) {
  if (access != StoreAccess::own) close_writes(EROFS);
}

std::optional<Entry> Store::get(std::string_view key_text, const Digest& digest) {
  if (is_known_bad(digest)) {
    context_.counters.add(&CacheStats::known_bad);
    return std::nullopt;
  }
  const PrivateDirectory shard = open_shard(shard_name(digest), IfMissing::fail);
  if (!shard.is_usable()) {
    note_unreadable(digest, shard.error, shard.vetting);
    return std::nullopt;
  }
  FileSystem& fs = context_.file_system;
  const std::string name = entry_name(digest);
  const PrivateFile read = read_private_file(fs, shard.directory.get(), name.c_str(), k_entry_max_bytes);
  if (!read.is_usable()) {
    note_unreadable(digest, read.error, read.vetting);
    return std::nullopt;
  }
  Decoded decoded = decode(read.bytes);
  if (!decoded.entry) {
    note_undecodable(digest, shard.directory.get(), read, decoded);
    return std::nullopt;
  }
  if (decoded.entry->key_text != key_text) {
    note_mismatched(digest);
    return std::nullopt;
  }
  const auto age = std::chrono::abs(context_.clock.wall() - modification_time(read.stat));
  if (age > k_touch_interval && access_ == StoreAccess::own)
    fs.touch(read.file.get());  // fails in a read-only directory, which does no harm
  return std::move(decoded.entry);
}

PutResult Store::put(const Entry& entry, const Digest& digest) {
  if (writes_closed()) {
    context_.counters.add(&CacheStats::skipped);
    return PutResult::off;
  }
  if (left_alone_.with([&](const auto& left) { return left.contains(digest); })) {
    context_.counters.add(&CacheStats::skipped);
    return PutResult::off;
  }
  if (const auto why = unfit_to_store(entry)) {
    context_.counters.add(&CacheStats::rejected);
    context_.tell(EventLevel::warning, "cache.rejected",
                  fmt::format("entry {} is not stored: {}", digest.hex(), *why));
    return PutResult::failed;
  }
  const auto bytes = encode(entry);
  if (const int error = publish_or_make_room(digest, bytes); error != 0)
    return note_write_failure(digest, error);
  set_known_bad(digest, false);
  context_.counters.add(&CacheStats::written);
  note_stored(bytes.size());
  return PutResult::stored;
}

int Store::publish_or_make_room(const Digest& digest, std::span<const std::byte> bytes) {
  int error = publish(digest, bytes);
  if (is_full_disk(error) && !room_is_no_help_) {
    const TrimResult made = trim_as_only_one({{}, bytes.size()}, {});
    error = publish(digest, bytes);
    // Somebody else fills the disk: do not give up a fifth of the cache each minute in vain.
    room_is_no_help_ = made.removed_entries > 0 && is_full_disk(error);
  }
  if (error == 0) room_is_no_help_ = false;
  return error;
}

int Store::publish(const Digest& digest, std::span<const std::byte> bytes) {
  const auto once = [&] {
    const PrivateDirectory shard = open_shard(shard_name(digest), IfMissing::create);
    if (shard.error != 0) return shard.error;
    if (shard.vetting != Vetting::trusted) return ENOTDIR;  // not a folder of ours
    return publish_private_file(context_.file_system, shard.directory.get(), entry_name(digest).c_str(),
                                bytes);
  };
  const int error = once();
  // The folder, or our temporary file in it, was removed under us: somebody clears the cache. Once more is
  // enough.
  return error == ENOENT ? once() : error;
}

bool Store::remove(const Digest& digest) {
  if (access_ != StoreAccess::own) return false;
  const int error = unlink_entry(open_shard(shard_name(digest), IfMissing::fail), digest);
  return error == 0 || error == ENOENT;
}

int Store::unlink_entry(const PrivateDirectory& shard, const Digest& digest) {
  if (shard.error != 0) return shard.error;
  if (shard.vetting != Vetting::trusted) return ENOTDIR;  // not a folder of ours
  return -context_.file_system.unlink_at(shard.directory.get(), entry_name(digest).c_str());
}

void Store::note_unreadable(const Digest& digest, int error, Vetting vetting) {
  if (error == ENOENT) return;  // simply not there
  if (is_planted(error)) return note_refused(digest, describe(Vetting::wrong_type));
  if (error == 0) return note_refused(digest, describe(vetting));
  context_.counters.add(&CacheStats::read_failed, error);
  context_.tell(EventLevel::info, "cache.read_failed",
                fmt::format("entry {} cannot be read: {}", digest.hex(), std::strerror(error)));
}

void Store::note_refused(const Digest& digest, std::string_view why) {
  context_.counters.add(&CacheStats::refused);
  context_.tell(EventLevel::warning, "cache.refused",
                fmt::format("entry {} is not trusted: it or its folder {}", digest.hex(), why));
}

void Store::note_mismatched(const Digest& digest) {
  const bool is_bundle = access_ == StoreAccess::read_only;
  context_.counters.add(is_bundle ? &CacheStats::bundle_mismatched : &CacheStats::mismatched);
  context_.tell(EventLevel::info, is_bundle ? "bundle.mismatched" : "cache.mismatched",
                fmt::format("entry {} belongs to another key, so it is not used", digest.hex()));
}

void Store::note_undecodable(const Digest& digest, int shard, const PrivateFile& read,
                             const Decoded& decoded) {
  const bool is_bundle = access_ == StoreAccess::read_only;
  if (!is_damage(decoded.fault)) {
    context_.counters.add(is_bundle ? &CacheStats::bundle_mismatched : &CacheStats::newer);
    context_.tell(EventLevel::info, is_bundle ? "bundle.newer" : "cache.newer",
                  fmt::format("entry {} is left for a later version of jitsmith: {}", digest.hex(),
                              describe_fault(decoded)));
    if (!is_bundle) left_alone_.with([&](auto& left) { left.insert(digest); });
    return;
  }
  if (is_bundle) {
    context_.counters.add(&CacheStats::bundle_corrupt);
    context_.tell(EventLevel::warning, "bundle.corrupt",
                  fmt::format("entry {} of a bundle is damaged ({}) and is not used; make the bundle again",
                              digest.hex(), describe_fault(decoded)));
    set_known_bad(digest, true);
    return;
  }
  context_.counters.add(&CacheStats::corrupt);
  context_.tell(
      EventLevel::warning, "cache.corrupt",
      fmt::format("entry {} is damaged ({}) and will be made again", digest.hex(), describe_fault(decoded)));

  if (access_ == StoreAccess::look_only) return set_known_bad(digest, true);

  // Another process may have replaced it since: look whether it is still the file that was read. A
  // replacement within the microseconds between these two calls is lost, which costs one compile.
  const std::string name = entry_name(digest);
  struct ::stat now {};
  int result = context_.file_system.stat_at(shard, name.c_str(), now);
  if (result == 0 && !is_same_file(now, read.stat)) return;
  if (result == 0) result = context_.file_system.unlink_at(shard, name.c_str());
  if (result == -ENOENT) return;
  if (result != 0) {
    context_.counters.add(&CacheStats::repair_failed);
    set_known_bad(digest, true);
    return;
  }
  context_.counters.add(&CacheStats::repaired);
  context_.tell(EventLevel::info, "cache.repaired",
                fmt::format("the damaged entry {} was removed", digest.hex()));
}

PutResult Store::note_write_failure(const Digest& digest, int error) {
  if (is_planted(error)) {
    note_refused(digest, "is a symbolic link, or not a folder that only you own and write");
    return PutResult::failed;
  }
  context_.counters.add(&CacheStats::write_failed, error);
  const bool has_closed = gate_.note_failure(error, context_.clock.steady());
  const auto closed = writes_closed();
  const std::string_view then = !has_closed || !closed ? ""
                                : closed->for_good     ? "; nothing more will be stored by this process"
                                                       : "; nothing will be stored for a minute";
  context_.tell(EventLevel::warning, "cache.write_failed",
                fmt::format("entry {} was not stored: {}{}", digest.hex(), std::strerror(error), then));
  return PutResult::failed;
}

bool Store::is_known_bad(const Digest& digest) const {
  return known_bad_.with([&](const auto& known) { return known.contains(digest); });
}

void Store::set_known_bad(const Digest& digest, bool bad) {
  known_bad_.with([&](auto& known) {
    if (bad) {
      known.insert(digest);
    } else {
      known.erase(digest);
    }
  });
}

PrivateDirectory Store::open_shard(const std::string& name, IfMissing if_missing) const {
  return open_private_directory(context_.file_system, entries_.get(), name.c_str(), if_missing);
}

}  // namespace jitsmith
