// jitsmith cache list | show | verify: the entries, one by one.
#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/key_fields.hpp>
#include <jitsmith/jit/lines.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

std::string age_text(std::chrono::system_clock::time_point then) {
  const auto hours = std::chrono::floor<std::chrono::hours>(std::chrono::system_clock::now() - then).count();
  if (hours < 1) return "<1 h";
  return hours < 48 ? fmt::format("{} h", hours) : fmt::format("{} d", hours / 24);
}

std::int64_t seconds_of(std::chrono::system_clock::time_point then) {
  return std::chrono::duration_cast<std::chrono::seconds>(then.time_since_epoch()).count();
}

// That a later jitsmith wrote an entry is a reason not to use it, and no problem.
const char* reason_name(const ListedEntry& entry) {
  return entry.is_newer ? "left_alone" : "problem";
}

// Of an object that has a reason by that name, "damaged: wrong checksum" or "newer format 2, left alone"; of
// another, "".
std::string reason_text(const Json& json) {
  if (json.contains("problem")) return "damaged: " + json["problem"].get<std::string>();
  if (json.contains("left_alone")) return json["left_alone"].get<std::string>() + ", left alone";
  return {};
}

Json json_of(const ListedEntry& entry) {
  Json json{{"digest", entry.digest.hex()}, {"size_bytes", entry.size_bytes}};
  if (!entry.problem.empty()) {
    json[reason_name(entry)] = entry.problem;
    return json;
  }
  json["last_used"] = seconds_of(entry.last_used);
  json["kind"] = to_string(entry.kind);
  const KeyFields fields = key_fields(entry.key_text);
  for (const char* name : {"target", "template", "instantiation"})
    json[name] = find_field(fields, name).value_or("");
  return json;
}

using PlacedVisitor =
    std::function<void(const ListedEntry&, const std::string& tier, const std::string& path)>;

void for_each_place(const Cache& cache, const PlacedVisitor& visit) {
  cache.list([&](const ListedEntry& entry) { visit(entry, "directory", cache.state().path); });
  std::size_t index = 0;
  for (const BundleState& bundle : cache.bundle_states())
    cache.list_bundle(index++, [&](const ListedEntry& entry) { visit(entry, "bundle", bundle.path); });
}

// "registers=32" a line, as an object.
Json json_of_facts(std::string_view facts) {
  Json json = Json::object();
  for (const std::string_view line : lines_of(facts)) {
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) json[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return json;
}

void add_place(Json& shown, const ListedEntry& entry, const std::string& tier, const std::string& path) {
  Json place{{"tier", tier}, {"path", path}, {"size_bytes", entry.size_bytes}};
  if (entry.problem.empty())
    place["last_used"] = seconds_of(entry.last_used);
  else
    place[reason_name(entry)] = entry.problem;
  shown["digest"] = entry.digest.hex();
  shown["places"].push_back(std::move(place));
  if (!entry.problem.empty() || shown.contains("key")) return;
  shown["kind"] = to_string(entry.kind);
  for (const KeyField& field : key_fields(entry.key_text))
    shown["key"][std::string(field.name)] = field.value;
  shown["facts"] = json_of_facts(entry.facts);
}

void print_entry(const Json& shown) {
  print(fmt::format("digest  {}\n", shown["digest"].get<std::string>()));
  for (const Json& place : shown["places"]) {
    std::string state = reason_text(place);
    if (state.empty())
      state =
          fmt::format("last used {} ago", age_text(std::chrono::system_clock::time_point(
                                              std::chrono::seconds(place["last_used"].get<std::int64_t>()))));
    print(fmt::format("in      {} {}, {}, {}\n", place["tier"].get<std::string>(),
                      place["path"].get<std::string>(), size_text(place["size_bytes"].get<std::uint64_t>()),
                      state));
  }
  if (!shown.contains("key")) return;
  print(fmt::format("kind    {}\nkey\n", shown["kind"].get<std::string>()));
  for (const auto& [name, value] : shown["key"].items())
    print(fmt::format("  {} = {}\n", name, value.get<std::string>()));
  print("facts\n");
  for (const auto& [name, value] : shown["facts"].items())
    print(fmt::format("  {} = {}\n", name, value.get<std::string>()));
}

void check_is_digest(const std::string& key) {
  constexpr std::string_view k_digits = "0123456789abcdef";
  if (key.empty() || key.size() > 32 || key.find_first_not_of(k_digits) != std::string::npos)
    throw InvalidRequest(fmt::format(
        "'{}' is no digest; give up to 32 of the digits 0-9 and a-f, as `jitsmith cache list` prints them",
        key));
}

}  // namespace

int cache_list(const Cache& cache, bool as_json) {
  Json all = Json::array();
  cache.list([&](const ListedEntry& entry) {
    const Json json = json_of(entry);
    if (as_json)
      all.push_back(json);
    else if (!entry.problem.empty())
      print(fmt::format("{}  {:>10}  {}\n", entry.digest.hex(), size_text(entry.size_bytes),
                        reason_text(json)));
    else
      print(fmt::format("{}  {:>10}  {:>5}  {}  {} {} for {}\n", entry.digest.hex(),
                        size_text(entry.size_bytes), age_text(entry.last_used), to_string(entry.kind),
                        json["template"].get<std::string>(), json["instantiation"].get<std::string>(),
                        json["target"].get<std::string>()));
  });
  if (as_json) print_json(all);
  return k_success;
}

int cache_show(const Cache& cache, const std::string& key, bool as_json) {
  check_is_digest(key);
  std::set<std::string> matches;
  Json shown;
  for_each_place(cache, [&](const ListedEntry& entry, const std::string& tier, const std::string& path) {
    if (!entry.digest.hex().starts_with(key)) return;
    matches.insert(entry.digest.hex());
    if (matches.size() == 1) add_place(shown, entry, tier, path);
  });
  if (matches.empty()) {
    complain(
        fmt::format("no entry of the directory or a bundle has a digest that begins with {}; "
                    "`jitsmith cache list` prints those of the directory",
                    key));
    return k_failure;
  }
  if (matches.size() > 1)
    throw InvalidRequest(
        fmt::format("{} entries have a digest that begins with {}, among them {} and {}; give "
                    "more of it",
                    matches.size(), key, *matches.begin(), *matches.rbegin()));
  as_json ? print_json(shown) : print_entry(shown);
  return k_success;
}

int cache_verify(const Cache& cache, bool as_json) {
  std::size_t sound = 0;
  Json left_alone = Json::array(), bad = Json::array();
  for_each_place(cache, [&](const ListedEntry& entry, const std::string& tier, const std::string& path) {
    if (entry.problem.empty()) {
      ++sound;
      return;
    }
    (entry.is_newer ? left_alone : bad)
        .push_back({{"digest", entry.digest.hex()},
                    {"tier", tier},
                    {"path", path},
                    {reason_name(entry), entry.problem}});
    if (!as_json)
      print(fmt::format("{} in {} {}: {}{}\n", entry.digest.hex(), tier, path, entry.problem,
                        entry.is_newer ? ", left alone" : ""));
  });
  for (const BundleState& bundle : cache.bundle_states()) {
    if (bundle.usable) continue;
    bad.push_back({{"tier", "bundle"}, {"path", bundle.path}, {"problem", bundle.reason}});
    if (!as_json) print(fmt::format("bundle {}: {}\n", bundle.path, bundle.reason));
  }
  if (as_json)
    print_json({{"sound", sound}, {"left_alone", left_alone}, {"bad", bad}});
  else
    print(fmt::format("{} sound, {} left alone, {} bad\n", sound, left_alone.size(), bad.size()));
  return bad.empty() ? k_success : k_failure;
}

}  // namespace jitsmith
