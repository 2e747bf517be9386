// jitsmith cache stat: where the cache is, whether it is used, what it holds.
#include <fmt/format.h>

#include <jitsmith/cache/plural.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/cache_facts.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {

int cache_stat(Cache& cache, bool as_json) {
  std::uint64_t entries = 0, bytes = 0, damaged = 0, left_alone = 0;
  cache.list([&](const ListedEntry& entry) {
    ++entries;
    bytes += entry.size_bytes;
    if (!entry.problem.empty()) ++(entry.is_newer ? left_alone : damaged);
  });
  Json json = cache_facts(cache);
  json.update({{"entries", entries},
               {"bytes", bytes},
               {"damaged", damaged},
               {"left_alone", left_alone},
               {"leftovers", cache.trim(cache.limits(), TrimMode::dry_run).swept}});
  if (as_json) {
    print_json(json);
    return k_success;
  }
  const std::string reason = json.value("reason", "");
  print(fmt::format("state     {}{}{}\n", json["state"].get<std::string>(), reason.empty() ? "" : ": ",
                    reason));
  if (const auto path = json["path"].get<std::string>(); !path.empty())
    print(fmt::format("path      {}\n", path));
  print(fmt::format("entries   {}, {}{}{}\n", entries, size_text(bytes),
                    damaged == 0 ? "" : fmt::format(", {} damaged", damaged),
                    left_alone == 0 ? "" : fmt::format(", {} of a newer jitsmith, left alone", left_alone)));
  if (const auto leftovers = json["leftovers"].get<std::uint64_t>(); leftovers > 0)
    print(fmt::format("leftovers {} of dead writers; `jitsmith cache trim` removes what they left\n",
                      plural(leftovers, "temporary file")));
  print(text_of_tiers(json, 9));
  return k_success;
}

}  // namespace jitsmith
