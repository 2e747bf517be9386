// Fields of an object that people or programs wrote on one line of JSON. What is wrong with them is an
// InvalidRequest of one sentence. Private.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/json_text.hpp>

namespace jitsmith {

template <class... Args>
[[noreturn]] void refuse_line(fmt::format_string<Args...> sentence, Args&&... args) {
  throw InvalidRequest(fmt::format(sentence, std::forward<Args>(args)...));
}

template <class Json>
const Json& field(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end()) refuse_line("'{}' is missing; give it", key);
  return *found;
}

template <class Json>
std::string text_field(const Json& object, std::string_view key) {
  const Json& json = field(object, key);
  if (!json.is_string() || json.template get_ref<const std::string&>().empty())
    refuse_line("'{}' is {}; give a string that is not empty", key, shown(json));
  return json.template get<std::string>();
}

}  // namespace jitsmith
