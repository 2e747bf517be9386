#include <jitsmith/runtime/json_text.hpp>

#include <charconv>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace jitsmith {
namespace {

// Ends a parse from within its callback; does not leave parse_strictly.
struct Stop {
  JsonTrouble trouble;
};

}  // namespace

template <JsonValue Json>
std::optional<JsonTrouble> parse_strictly(std::string_view text, const JsonLimits& limits, Json& parsed) {
  using Kind = JsonTrouble::Kind;
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of each open object
  const auto check = [&](int depth, Event event, Json& item) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == Event::object_start || event == Event::array_start) {
      if (level >= limits.depth) throw Stop{{.kind = Kind::too_deep}};
      keys.resize(level);  // forgets what was at this level before
      keys.emplace_back();
    }
    if (event == Event::key) {
      if (!keys[level - 1].insert(item.template get<std::string>()).second)
        throw Stop{{.kind = Kind::key_twice, .key = shown(item)}};
      if (keys[level - 1].size() > limits.keys) throw Stop{{.kind = Kind::too_many_keys}};
    }
    return true;
  };
  try {
    parsed = Json::parse(text, check);
    return std::nullopt;
  } catch (const Stop& stop) {
    return stop.trouble;
  } catch (const typename Json::parse_error& error) {
    return JsonTrouble{.kind = Kind::malformed, .byte = error.byte};
  } catch (const typename Json::exception&) {
    return JsonTrouble{.kind = Kind::number_too_large};
  }
}

template <JsonValue Json>
std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

template <JsonValue Json>
std::string shown(const Json& json) {
  std::string text = dump(json);
  if (text.size() > 60) text.replace(57, std::string::npos, "...");
  return text;
}

std::string shown(std::string_view text) {
  return shown(nlohmann::json(text));
}

template <JsonValue Json>
std::optional<std::int64_t> integer_in(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() &&
      json.template get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return json.template get<std::int64_t>();
}

template <JsonValue Json>
std::optional<std::string> value_text(const Json& json) {
  if (json.is_boolean()) return json.template get<bool>() ? "true" : "false";
  if (json.is_string()) return json.template get<std::string>();
  const std::optional<std::int64_t> integer = integer_in(json);
  if (!integer) return std::nullopt;
  return fmt::format("{}", *integer);
}

template <JsonValue Json>
Json value_json(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && fmt::format("{}", number) == text)
    return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

using Sorted = nlohmann::json;
template std::optional<JsonTrouble> parse_strictly(std::string_view, const JsonLimits&, Sorted&);
template std::string dump(const Sorted&);
template std::string shown(const Sorted&);
template std::optional<std::int64_t> integer_in(const Sorted&);
template std::optional<std::string> value_text(const Sorted&);
template Sorted value_json(const std::string&);

using Ordered = nlohmann::ordered_json;
template std::optional<JsonTrouble> parse_strictly(std::string_view, const JsonLimits&, Ordered&);
template std::string dump(const Ordered&);
template std::string shown(const Ordered&);
template std::optional<std::int64_t> integer_in(const Ordered&);
template std::optional<std::string> value_text(const Ordered&);
template Ordered value_json(const std::string&);

}  // namespace jitsmith
