// jitsmith cache trim | clear: removing entries.
#include <charconv>

#include <fmt/format.h>

#include <jitsmith/cache/plural.hpp>
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
  complain(fmt::format("{} could not be removed; look at the rights of the cache directory",
                       plural(failed, "file")));
  return k_failure;
}

void print_trim_as_json(const TrimResult& result, const CacheLimits& limits, bool dry_run) {
  print_json({{"dry_run", dry_run},
              {"limits", {{"bytes", limits.max_bytes}, {"entries", limits.max_entries}}},
              {"before", {{"entries", result.entries}, {"bytes", result.bytes}}},
              {"removed", {{"entries", result.removed_entries}, {"bytes", result.removed_bytes}}},
              {"after",
               {{"entries", result.entries - result.removed_entries},
                {"bytes", result.bytes - result.removed_bytes}}},
              {"spared", result.spared},
              {"swept", result.swept},
              {"failed", result.failed},
              {"left_to_another", false}});
}

void print_trim_as_text(const TrimResult& result, bool dry_run) {
  const auto line = [](const char* name, std::uint64_t entries, std::uint64_t bytes,
                       const std::string& more) {
    print(fmt::format("{:<9} {}, {}{}\n", name, plural(entries, "entry"), size_text(bytes), more));
  };
  line("before", result.entries, result.bytes, "");
  line(dry_run ? "would go" : "removed", result.removed_entries, result.removed_bytes,
       fmt::format(", and {} of dead writers", plural(result.swept, "temporary file")));
  line("after", result.entries - result.removed_entries, result.bytes - result.removed_bytes, "");
  if (result.spared > 0)
    print(fmt::format("spared    {} younger than {} minutes, so it {} over its limits; trim again later\n",
                      plural(result.spared, "entry"), k_trim_grace.count(),
                      dry_run ? "would stay" : "stays"));
}

}  // namespace

int cache_trim(Cache& cache, const TrimArgs& args, bool as_json) {
  const CacheLimits limits = limits_of(cache.limits(), args);
  const TrimResult result = cache.trim(limits, args.dry_run ? TrimMode::dry_run : TrimMode::remove);
  if (result.left_to_another) {
    if (as_json) print_json({{"dry_run", args.dry_run}, {"left_to_another", true}});
    complain("another process trims the cache directory just now; wait for it, or try again");
    return k_failure;
  }
  as_json ? print_trim_as_json(result, limits, args.dry_run) : print_trim_as_text(result, args.dry_run);
  return status_of_removal(result.failed);
}

int cache_clear(Cache& cache, bool as_json) {
  const ClearResult result = cache.clear();
  if (as_json)
    print_json({{"files", result.files}, {"bytes", result.bytes}, {"failed", result.failed}});
  else
    print(fmt::format("removed {}, {}, from {}\n", plural(result.files, "file"), size_text(result.bytes),
                      cache.state().path));
  return status_of_removal(result.failed);
}

}  // namespace jitsmith
