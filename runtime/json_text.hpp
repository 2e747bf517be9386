// Reading and writing the JSON that people edit: strict parsing within limits, and the text form of parameter
// values. For the two kinds of nlohmann object, sorted and in the order of the file; private, so that no
// public header brings in nlohmann. What is wrong comes back as data: each format has sentences of its own.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace jitsmith {

template <class Json>
concept JsonValue = std::same_as<Json, nlohmann::json> || std::same_as<Json, nlohmann::ordered_json>;

struct JsonLimits {
  std::size_t depth;
  std::size_t keys = std::numeric_limits<std::size_t>::max();  // of one object
};

struct JsonTrouble {
  enum class Kind { too_deep, key_twice, too_many_keys, malformed, number_too_large };

  Kind kind;
  std::string key = {};  // of key_twice, as shown() gives it
  std::size_t byte = 0;  // of malformed, from 1
};

// Sets `parsed`, or says what is wrong. JSON itself lets a key appear twice and arrays nest without end.
template <JsonValue Json>
std::optional<JsonTrouble> parse_strictly(std::string_view text, const JsonLimits& limits, Json& parsed);

// On one line, in ASCII, also when a string is not UTF-8.
template <JsonValue Json>
std::string dump(const Json& json);

// The same for a message: short, whatever the file has.
template <JsonValue Json>
std::string shown(const Json& json);
std::string shown(std::string_view text);

template <JsonValue Json>
std::optional<std::int64_t> integer_in(const Json& json);

// The text form of an integer, a boolean or a string; nothing for all else.
template <JsonValue Json>
std::optional<std::string> value_text(const Json& json);

// The inverse of value_text.
template <JsonValue Json>
Json value_json(const std::string& text);

}  // namespace jitsmith
