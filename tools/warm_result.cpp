#include <jitsmith/tools/warm_result.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <jitsmith/cache/stats_fields.hpp>
#include <jitsmith/tools/json.hpp>

namespace jitsmith {
namespace {

constexpr std::array<std::string_view, 5> k_outcomes{"unfinished", "cached", "compiled", "missing", "failed"};

// Those that are not zero.
Json json_of(const CacheStats& stats) {
  Json json = Json::object();
  for_each_counter([&](const char* name, auto counter) {
    if (const auto& value = stats.*counter; value != std::decay_t<decltype(value)>{}) json[name] = value;
  });
  return json;
}

CacheStats stats_of(const Json& json) {
  CacheStats stats;
  for_each_counter([&](const char* name, auto counter) {
    if (json.contains(name)) json.at(name).get_to(stats.*counter);
  });
  return stats;
}

}  // namespace

std::string_view to_string(WarmOutcome outcome) {
  return k_outcomes[static_cast<std::size_t>(outcome)];
}

WarmResult failure(std::string error, std::string log) {
  WarmResult result;
  result.outcome = WarmOutcome::failed;
  result.error = std::move(error);
  result.log = std::move(log);
  return result;
}

std::string to_line(const WarmResult& result) {
  const Json json{{"outcome", to_string(result.outcome)},
                  {"milliseconds", result.milliseconds},
                  {"not_stored", result.not_stored},
                  {"not_shared", result.not_shared},
                  {"error", result.error},
                  {"log", result.log},
                  {"statistics", json_of(result.statistics)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);  // a compiler's output need not be UTF-8
}

WarmResult warm_result_of(std::string_view line) try {
  const Json json = Json::parse(line);
  WarmResult result;
  const auto outcome = std::ranges::find(k_outcomes, json.at("outcome").get_ref<const std::string&>());
  if (outcome == k_outcomes.end())
    return failure(fmt::format("the worker's answer cannot be read: {}", line));
  result.outcome = static_cast<WarmOutcome>(outcome - k_outcomes.begin());
  result.milliseconds = json.at("milliseconds").get<double>();
  result.not_stored = json.at("not_stored").get<std::string>();
  result.not_shared = json.at("not_shared").get<std::string>();
  result.error = json.at("error").get<std::string>();
  result.log = json.at("log").get<std::string>();
  result.statistics = stats_of(json.at("statistics"));
  return result;
} catch (const Json::exception& error) {
  return failure(fmt::format("the worker's answer cannot be read: {}", error.what()));
}

}  // namespace jitsmith
