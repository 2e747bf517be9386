// The names that the cache uses on disk. Of these it removes entries and temporary files, and nothing else.
//
//   CACHEDIR.TAG                         tells backup programs to pass by
//   v1/locks                             empty: its bytes are locked, never written (build_lock.hpp)
//   v1/<2 hex>/<32 hex>.jse              one entry; the folder is the first byte of the digest
//   v1/<2 hex>/.t-<32 hex>               an entry that is being written, or was when its writer died
#pragma once

#include <jitsmith/cache/digest.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

inline constexpr const char* k_format_folder = "v1";
inline constexpr unsigned k_shard_count = 256;

inline constexpr const char* k_locks_name = "locks";

unsigned shard_of(const Digest& digest);
std::string shard_name(unsigned shard);
std::string shard_name(const Digest& digest);
std::string entry_name(const Digest& digest);

// Exact inverses: anything else, however similar, is a stranger's file.
std::optional<Digest> parse_entry_name(std::string_view name);
bool is_temporary_name(std::string_view name);

// 128 random bits from the kernel: process ids and counters collide between containers and after fork.
// Nothing when the kernel has no random numbers to give.
std::optional<std::string> random_temporary_name();

}  // namespace jitsmith
