#include <jitsmith/jit/schema.hpp>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

bool allows(const ParamSpec& spec, const Value& value) {
  switch (spec.kind) {
    case ParamKind::integer: {
      const auto* v = std::get_if<std::int64_t>(&value);
      return v != nullptr && spec.integers.contains(*v);
    }
    case ParamKind::boolean:
      return std::holds_alternative<bool>(value);
    case ParamKind::choice: {
      const auto* v = std::get_if<std::string>(&value);
      return v != nullptr && std::ranges::find(spec.choices, *v) != spec.choices.end();
    }
    case ParamKind::type: {
      const auto* v = std::get_if<ElementType>(&value);
      return v != nullptr && std::ranges::find(spec.types, *v) != spec.types.end();
    }
  }
  return false;
}

// Replaces each {name} by the value of that parameter.
std::string fill_in(std::string_view sentence, const Params& params) {
  std::string text;
  for (std::size_t i = 0; i < sentence.size();) {
    const std::size_t end = sentence[i] == '{' ? sentence.find('}', i) : std::string_view::npos;
    const Value* value =
        end == std::string_view::npos ? nullptr : params.find(sentence.substr(i + 1, end - i - 1));
    if (value != nullptr) {
      text += to_string(*value);
      i = end + 1;
    } else {
      text += sentence[i++];
    }
  }
  return text;
}

}  // namespace

bool IntegerSet::contains(std::int64_t value) const {
  if (!listed.empty()) return std::ranges::find(listed, value) != listed.end();
  return value >= min && value <= max && value % multiple_of == 0;
}

std::string IntegerSet::describe() const {
  if (!listed.empty()) return fmt::format("one of {}", fmt::join(listed, ", "));
  const std::string kind = multiple_of == 1 ? "an integer" : fmt::format("a multiple of {}", multiple_of);
  const bool unbounded = max == std::numeric_limits<std::int64_t>::max();
  return unbounded ? fmt::format("{} of at least {}", kind, min)
                   : fmt::format("{} from {} to {}", kind, min, max);
}

std::string ParamSpec::allowed() const {
  switch (kind) {
    case ParamKind::integer:
      return integers.describe();
    case ParamKind::boolean:
      return "true or false";
    case ParamKind::choice:
      return join_or(choices);
    case ParamKind::type: {
      std::vector<std::string> names;
      for (const ElementType type : types) names.emplace_back(name_of(type));
      return join_or(names);
    }
  }
  return {};
}

Schema& Schema::integer(std::string name, IntegerSet allowed, std::string meaning,
                        std::optional<std::int64_t> fallback) {
  ParamSpec spec{.name = std::move(name), .kind = ParamKind::integer, .meaning = std::move(meaning)};
  spec.integers = std::move(allowed);
  if (fallback) spec.fallback = *fallback;
  params_.push_back(std::move(spec));
  return *this;
}

Schema& Schema::boolean(std::string name, std::string meaning, std::optional<bool> fallback) {
  ParamSpec spec{.name = std::move(name), .kind = ParamKind::boolean, .meaning = std::move(meaning)};
  if (fallback) spec.fallback = *fallback;
  params_.push_back(std::move(spec));
  return *this;
}

Schema& Schema::choice(std::string name, std::vector<std::string> choices, std::string meaning,
                       std::optional<std::string> fallback, std::string device_enum) {
  ParamSpec spec{.name = std::move(name), .kind = ParamKind::choice, .meaning = std::move(meaning)};
  spec.choices = std::move(choices);
  spec.device_enum = std::move(device_enum);
  if (fallback) spec.fallback = std::move(*fallback);
  params_.push_back(std::move(spec));
  return *this;
}

Schema& Schema::type(std::string name, std::vector<ElementType> types, std::string meaning,
                     std::optional<ElementType> fallback) {
  ParamSpec spec{.name = std::move(name), .kind = ParamKind::type, .meaning = std::move(meaning)};
  spec.types = std::move(types);
  if (fallback) spec.fallback = *fallback;
  params_.push_back(std::move(spec));
  return *this;
}

Schema& Schema::rule(std::string sentence, std::function<bool(const Params&)> holds) {
  rules_.push_back({std::move(sentence), std::move(holds)});
  return *this;
}

const ParamSpec& Schema::spec(std::string_view name, std::string_view owner) const {
  for (const ParamSpec& spec : params_)
    if (spec.name == name) return spec;
  std::vector<std::string_view> known;
  for (const ParamSpec& spec : params_) known.push_back(spec.name);
  throw InvalidRequest(fmt::format("{} has no parameter '{}'; it has {}", owner, name,
                                   known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

Params Schema::complete(const Params& given, std::string_view owner) const {
  for (const auto& item : given.items()) spec(item.first, owner);
  Params complete;
  for (const ParamSpec& spec : params_) {
    const Value* value = given.find(spec.name);
    if (value == nullptr && spec.fallback) value = &*spec.fallback;
    if (value == nullptr)
      throw InvalidRequest(fmt::format("{} needs parameter '{}' ({}); give it {}", owner, spec.name,
                                       spec.meaning, spec.allowed()));
    if (!allows(spec, *value))
      throw InvalidRequest(fmt::format("{}: {}={} is not allowed; give {}", owner, spec.name,
                                       to_string(*value), spec.allowed()));
    complete.set(spec.name, *value);
  }
  for (const Rule& rule : rules_)
    if (!rule.holds(complete))
      throw InvalidRequest(fmt::format("{}: {}", owner, fill_in(rule.sentence, complete)));
  return complete;
}

Value Schema::parse(std::string_view name, std::string_view text, std::string_view owner) const {
  const ParamSpec& param = spec(name, owner);
  std::optional<Value> value;
  switch (param.kind) {
    case ParamKind::integer: {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc{} && end == text.data() + text.size()) value = number;
      break;
    }
    case ParamKind::boolean:
      if (text == "true" || text == "1") value = true;
      if (text == "false" || text == "0") value = false;
      break;
    case ParamKind::choice:
      value = std::string(text);
      break;
    case ParamKind::type:
      if (const auto type = element_type_from(text)) value = *type;
      break;
  }
  if (!value || !allows(param, *value))
    throw InvalidRequest(
        fmt::format("{}: {}={} is not allowed; give {}", owner, name, text, param.allowed()));
  return *value;
}

std::string Schema::template_arguments(const Params& complete) const {
  std::string text;
  for (const ParamSpec& spec : params_) {
    const Value& value = *complete.find(spec.name);
    if (!text.empty()) text += ", ";
    if (const auto* type = std::get_if<ElementType>(&value))
      text += device_name_of(*type);
    else if (spec.kind == ParamKind::choice)
      text += fmt::format("{}::{}", spec.device_enum, to_string(value));
    else
      text += to_string(value);
  }
  return text;
}

}  // namespace jitsmith
