#include <jitsmith/tools/key_fields.hpp>

#include <charconv>

namespace jitsmith {

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
    fields.emplace(text.substr(0, open), rest.substr(0, length));
    text = rest.substr(length + 1);
  }
  return fields;
}

}  // namespace jitsmith
