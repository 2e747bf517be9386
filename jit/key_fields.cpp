#include <jitsmith/jit/key_fields.hpp>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr std::string_view k_parameter = "parameter.";

// Fields whose values are digests, or as good as.
bool is_opaque(std::string_view name) {
  return name == "source" || name == "toolchain" || name.starts_with("header.");
}

}  // namespace

KeyFields key_fields(std::string_view text) {
  KeyFields fields;
  while (!text.empty()) {
    // A template's path is part of a name and may have brackets: the length stands before the first "]=".
    const std::size_t close = text.find("]=");
    const std::size_t open = text.substr(0, close).rfind('[');
    if (close == std::string_view::npos || open == std::string_view::npos) break;
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data() + open + 1, text.data() + close, length);
    const std::string_view rest = text.substr(close + 2);
    if (error != std::errc{} || end != text.data() + close || length >= rest.size() || rest[length] != '\n')
      break;
    fields.push_back({text.substr(0, open), rest.substr(0, length)});
    text = rest.substr(length + 1);
  }
  return fields;
}

std::optional<std::string_view> find_field(const KeyFields& fields, std::string_view name) {
  const auto place = std::ranges::find(fields, name, &KeyField::name);
  return place == fields.end() ? std::nullopt : std::optional(place->value);
}

std::vector<FieldDifference> differences(const KeyFields& wanted, const KeyFields& had) {
  std::vector<FieldDifference> result;
  for (const KeyField& field : wanted) {
    if (field.name == "toolchain" && field.value.empty()) continue;
    const auto other = find_field(had, field.name);
    if (other != field.value) result.push_back({field.name, field.value, other});
  }
  for (const KeyField& field : had)
    if (!find_field(wanted, field.name)) result.push_back({field.name, std::nullopt, field.value});
  return result;
}

std::string_view without_kind(std::string_view parameter_value) {
  return parameter_value.substr(std::min(parameter_value.find(' ') + 1, parameter_value.size()));
}

std::string to_string(const FieldDifference& difference) {
  if (is_opaque(difference.name) && difference.wanted && difference.had) return std::string(difference.name);
  const auto shown = [&](const std::optional<std::string_view>& value) -> std::string_view {
    if (!value) return "absent";
    return difference.name.starts_with(k_parameter) ? without_kind(*value) : *value;
  };
  return fmt::format("{} ({}, not {})", difference.name, shown(difference.had), shown(difference.wanted));
}

}  // namespace jitsmith
