#include <jitsmith/tools/losses.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <jitsmith/cache/plural.hpp>
#include <jitsmith/cache/whole_file.hpp>

namespace jitsmith {
namespace {

// What was counted since, of the first kind that was; 0 for none.
int error_since(const ErrorCounts& before, const ErrorCounts& now) {
  const auto grown = std::ranges::find_if(now, [&](const auto& counted) {
    const auto then = before.find(counted.first);
    return then == before.end() || then->second < counted.second;
  });
  return grown == now.end() ? 0 : grown->first;
}

}  // namespace

std::string why_not_stored(const Cache& cache, const CacheStats& before) {
  const CacheStats now = cache.stats();
  const DirectoryState state = cache.state();
  if (state.status != DirectoryStatus::usable) return state.reason;
  if (now.newer > before.newer)
    return fmt::format(
        "an entry of a newer jitsmith has this place in {} and is left alone; use that jitsmith, or set "
        "JITSMITH_CACHE_DIR to another directory",
        state.path);
  if (now.refused > before.refused)
    return fmt::format(
        "what has this place in {} is not trusted, as it is no file or folder that only you own and write; "
        "remove it, or set JITSMITH_CACHE_DIR to another directory",
        state.path);
  if (now.rejected > before.rejected)
    return "it is no machine code, or larger than 64 MiB; look at what the compiler makes";
  if (const int error = error_since(before.write_failed, now.write_failed); error != 0)
    return fmt::format(
        "{} could not be written: {}; try again, or set JITSMITH_CACHE_DIR to another directory", state.path,
        message_of_errno(error));
  return "there was no memory for it; free some, and try again";
}

std::string why_not_shared(const Cache& cache, RemoteMode mode, const CacheStats& before) {
  const RemoteState state = cache.remote_state();
  const bool wanted = state.configured && mode == RemoteMode::read_write;
  if (!wanted || cache.stats().remote_written > before.remote_written) return {};
  if (!state.reason.empty()) return state.reason;
  return "it failed or was too slow a moment ago; try again, or see --verbose";
}

std::string unshared_text(std::size_t taken, std::size_t of, std::string_view noun, std::string_view why) {
  return fmt::format("warning: the remote tier took {} of {}: {}", taken, plural(of, noun), why);
}

}  // namespace jitsmith
