// jitsmith cache stat | list | clear: what is in the cache directory.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/key_fields.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

int stat(const Cache& cache, bool as_json) {
  std::uint64_t entries = 0, bytes = 0, damaged = 0;
  cache.list([&](const ListedEntry& entry) {
    ++entries;
    bytes += entry.size_bytes;
    if (!entry.problem.empty()) ++damaged;
  });
  const DirectoryState state = cache.state();
  if (as_json) {
    Json json{{"state", to_string(state.status)}, {"path", state.path}};
    if (!state.reason.empty()) json["reason"] = state.reason;
    json.update({{"entries", entries}, {"bytes", bytes}, {"damaged", damaged}});
    print_json(json);
    return k_success;
  }
  print(fmt::format("state     {}{}{}\n", to_string(state.status), state.reason.empty() ? "" : ": ",
                    state.reason));
  if (!state.path.empty()) print(fmt::format("path      {}\n", state.path));
  print(fmt::format("entries   {}, {}{}\n", entries, size_text(bytes),
                    damaged == 0 ? "" : fmt::format(", {} damaged", damaged)));
  return k_success;
}

std::string age_text(std::chrono::system_clock::time_point then) {
  const auto hours = std::chrono::floor<std::chrono::hours>(std::chrono::system_clock::now() - then).count();
  if (hours < 1) return "<1 h";
  return hours < 48 ? fmt::format("{} h", hours) : fmt::format("{} d", hours / 24);
}

Json json_of(const ListedEntry& entry) {
  Json json{{"digest", entry.digest.hex()}, {"size_bytes", entry.size_bytes}};
  if (!entry.problem.empty()) {
    json["problem"] = entry.problem;
    return json;
  }
  json["last_used"] =
      std::chrono::duration_cast<std::chrono::seconds>(entry.last_used.time_since_epoch()).count();
  json["kind"] = to_string(entry.kind);
  KeyFields fields = key_fields(entry.key_text);
  for (const char* name : {"target", "template", "instantiation"}) json[name] = fields[name];
  return json;
}

int list(const Cache& cache, bool as_json) {
  Json all = Json::array();
  cache.list([&](const ListedEntry& entry) {
    const Json json = json_of(entry);
    if (as_json)
      all.push_back(json);
    else if (!entry.problem.empty())
      print(fmt::format("{}  {:>10}  damaged: {}\n", entry.digest.hex(), size_text(entry.size_bytes),
                        entry.problem));
    else
      print(fmt::format("{}  {:>10}  {:>5}  {}  {} {} for {}\n", entry.digest.hex(),
                        size_text(entry.size_bytes), age_text(entry.last_used), to_string(entry.kind),
                        json["template"].get<std::string>(), json["instantiation"].get<std::string>(),
                        json["target"].get<std::string>()));
  });
  if (as_json) print_json(all);
  return k_success;
}

int clear(Cache& cache, bool as_json) {
  const ClearResult result = cache.clear();
  if (as_json)
    print_json({{"files", result.files}, {"bytes", result.bytes}, {"failed", result.failed}});
  else
    print(fmt::format("removed {} files, {}, from {}\n", result.files, size_text(result.bytes),
                      cache.state().path));
  if (result.failed == 0) return k_success;
  complain(
      fmt::format("{} files could not be removed; look at the rights of the cache directory", result.failed));
  return k_failure;
}

}  // namespace

SubCommand cache_command(Arguments& app) {
  Arguments arguments = app.sub_command("cache", "Look at the cache directory, or empty it");
  arguments.require_sub_command();
  const auto as_json = std::make_shared<bool>(false);
  arguments.flag("--json", *as_json, "Print JSON");
  const Arguments stat_arguments =
      arguments.sub_command("stat", "Where it is, whether it is used, what it holds");
  const Arguments list_arguments = arguments.sub_command("list", "Its entries, one a line");
  arguments.sub_command("clear", "Remove every entry, without asking");
  return {arguments, [=](const Options& options) {
            Cache cache({.directory = options.cache, .events = options.events});
            if (stat_arguments.given()) return stat(cache, *as_json);
            if (const DirectoryState state = cache.state(); state.status == DirectoryStatus::off) {
              complain(state.reason);
              return k_failure;
            }
            return list_arguments.given() ? list(cache, *as_json) : clear(cache, *as_json);
          }};
}

}  // namespace jitsmith
