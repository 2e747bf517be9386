// jitsmith cache trim | clear: removing entries.
#include <charconv>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

CacheLimits limits_of(CacheLimits limits, const TrimArgs& args) {
  if (!args.max_bytes.empty()) {
    const auto bytes = bytes_from_text(args.max_bytes);
    if (!bytes)
      throw InvalidRequest(
          fmt::format("--max-bytes {} is not a number of bytes; give one, perhaps with K, M, G or T after it",
                      args.max_bytes));
    limits.max_bytes = *bytes;
  }
  if (!args.max_entries.empty()) {
    const char* const end = args.max_entries.data() + args.max_entries.size();
    const auto [stop, error] = std::from_chars(args.max_entries.data(), end, limits.max_entries);
    if (error != std::errc{} || stop != end)
      throw InvalidRequest(
          fmt::format("--max-entries {} is not a number of entries; give one", args.max_entries));
  }
  return limits;
}

int status_of_removal(std::uint64_t failed) {
  if (failed == 0) return k_success;
  complain(fmt::format("{} files could not be removed; look at the rights of the cache directory", failed));
  return k_failure;
}

}  // namespace

int cache_trim(Cache& cache, const TrimArgs& args, bool as_json) {
  const CacheLimits limits = limits_of(cache.limits(), args);
  const TrimResult result = cache.trim(limits, args.dry_run ? TrimMode::dry_run : TrimMode::remove);
  if (as_json) {
    print_json({{"dry_run", args.dry_run},
                {"limits", {{"bytes", limits.max_bytes}, {"entries", limits.max_entries}}},
                {"before", {{"entries", result.entries}, {"bytes", result.bytes}}},
                {"removed", {{"entries", result.removed_entries}, {"bytes", result.removed_bytes}}},
                {"after",
                 {{"entries", result.entries - result.removed_entries},
                  {"bytes", result.bytes - result.removed_bytes}}},
                {"swept", result.swept},
                {"failed", result.failed},
                {"left_to_another", result.left_to_another}});
  } else if (!result.left_to_another) {
    print(fmt::format("before    {} entries, {}\n", result.entries, size_text(result.bytes)));
    print(fmt::format("{} {} entries, {}, and {} temporary files of dead writers\n",
                      args.dry_run ? "would go " : "removed  ", result.removed_entries,
                      size_text(result.removed_bytes), result.swept));
    print(fmt::format("after     {} entries, {}\n", result.entries - result.removed_entries,
                      size_text(result.bytes - result.removed_bytes)));
  }
  if (result.left_to_another) {
    complain("another process trims the cache directory just now; wait for it, or try again");
    return k_failure;
  }
  return status_of_removal(result.failed);
}

int cache_clear(Cache& cache, bool as_json) {
  const ClearResult result = cache.clear();
  if (as_json)
    print_json({{"files", result.files}, {"bytes", result.bytes}, {"failed", result.failed}});
  else
    print(fmt::format("removed {} files, {}, from {}\n", result.files, size_text(result.bytes),
                      cache.state().path));
  return status_of_removal(result.failed);
}

}  // namespace jitsmith
