// How large a cache directory may become, and what bringing it back under its limits did.
//
// Above a limit entries are removed, least recently used first, until 80 % of it is left: so that a cache at
// its limit is not walked again at every put. Entries younger than ten minutes stay, for somebody is about to
// load them; their time of use is known to the hour. A time in the future counts as old, unless it is so near
// that the clocks of two machines may differ by as much. Sizes are those of the blocks on the disk.
#pragma once

#include <chrono>
#include <cstdint>

namespace jitsmith {

struct CacheLimits {
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // 0: no limit
  std::uint64_t max_entries = 65'536;                // 0: no limit
};

inline constexpr std::chrono::minutes k_trim_grace{10};
inline constexpr std::chrono::hours k_leftover_age{1};  // of the temporary file of a dead writer

enum class TrimMode { remove, dry_run };

struct TrimResult {
  std::uint64_t entries = 0, bytes = 0;                  // before; bytes also of files being written
  std::uint64_t removed_entries = 0, removed_bytes = 0;  // in a dry run: would be
  std::uint64_t swept = 0;                               // temporary files of dead writers removed
  std::uint64_t failed = 0;                              // files that could not be removed
  std::uint64_t spared = 0;      // entries too young to be removed, when a limit stays exceeded
  bool left_to_another = false;  // another process trims just now: nothing was done
};

}  // namespace jitsmith
