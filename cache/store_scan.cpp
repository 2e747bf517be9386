// The parts of Store that walk over all entries, for the people and programs that look after a cache.
#include <jitsmith/cache/listing.hpp>
#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/store.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace jitsmith {
namespace {

std::vector<std::string> sorted_names(FileSystem& fs, const PrivateDirectory& shard) {
  std::vector<std::string> names;
  if (shard.is_usable())
    fs.list(shard.directory.get(), names);  // what was read before an error is still good
  std::ranges::sort(names);
  return names;
}

// Why the shard hides what it holds, if it holds anything; 0 when it does not.
int error_of(const PrivateDirectory& shard) {
  if (shard.error != 0) return shard.error == ENOENT ? 0 : shard.error;
  return shard.vetting == Vetting::trusted ? 0 : EPERM;
}

}  // namespace

void Store::list(const EntryVisitor& visit) const {
  FileSystem& fs = context_.file_system;
  for (unsigned index = 0; index < k_shard_count; ++index) {
    const PrivateDirectory shard = open_shard(shard_name(index), IfMissing::fail);
    if (error_of(shard) != 0) {
      ListedEntry unreadable;
      unreadable.digest.high = std::uint64_t{index} << 56;
      unreadable.problem =
          fmt::format("all entries that begin with {}: their folder {}", shard_name(index),
                      shard.error != 0 ? fmt::format("cannot be read ({})", std::strerror(shard.error))
                                       : std::string(describe(shard.vetting)));
      visit(unreadable);
    }
    for (const std::string& name : sorted_names(fs, shard)) {
      const auto digest = parse_entry_name(name);
      if (!digest || shard_of(*digest) != index) continue;
      const PrivateFile read = read_private_file(fs, shard.directory.get(), name.c_str(), k_entry_max_bytes);
      if (read.error == ENOENT) continue;  // removed since the folder was read
      ListedEntry listed;
      listed.digest = *digest;
      listed.size_bytes = static_cast<std::uint64_t>(read.stat.st_size);
      listed.last_used = modification_time(read.stat);
      if (read.error != 0)
        listed.problem = std::strerror(read.error);
      else if (read.vetting != Vetting::trusted)
        listed.problem = describe(read.vetting);
      else
        set_content(listed, decode(read.bytes), "stored under the name of another key");
      visit(listed);
    }
  }
}

ErrorCounts Store::walk(const std::function<void(const OwnFile&)>& visit, unsigned step) const {
  FileSystem& fs = context_.file_system;
  ErrorCounts errors;
  std::vector<std::string> names;
  for (unsigned index = 0; index < k_shard_count; index += step) {
    const PrivateDirectory shard = open_shard(shard_name(index), IfMissing::fail);
    if (const int error = error_of(shard); error != 0) ++errors[error];
    if (!shard.is_usable()) continue;
    names.clear();
    if (const int result = fs.list(shard.directory.get(), names); result < 0) ++errors[-result];
    for (const std::string& name : names) {
      OwnFile file{shard.directory.get(), name.c_str(), parse_entry_name(name)};
      if (file.digest ? shard_of(*file.digest) != index : !is_temporary_name(name)) continue;
      file.error = -fs.stat_at(file.shard, file.name, file.stat);
      if (file.error != ENOENT) visit(file);  // otherwise removed since the folder was read
    }
  }
  return errors;
}

ClearResult Store::clear() {
  ClearResult cleared;
  if (access_ != StoreAccess::own) return cleared;
  const ErrorCounts unread = walk([&](const OwnFile& file) {
    const int error = file.error != 0 ? file.error : -context_.file_system.unlink_at(file.shard, file.name);
    if (error == 0) {
      ++cleared.files;
      cleared.bytes += static_cast<std::uint64_t>(file.stat.st_size);
    } else if (error != ENOENT) {
      ++cleared.failed;
    }
  });
  for (const auto& [error, shards] : unread) cleared.failed += shards;
  usage_.forget();
  return cleared;
}

}  // namespace jitsmith
