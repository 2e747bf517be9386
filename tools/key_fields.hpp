// Reads the text of a key (jit/key.hpp): lines `name[length]=value`, where a value may have any bytes.
#pragma once

#include <map>
#include <string_view>

namespace jitsmith {

using KeyFields = std::map<std::string_view, std::string_view>;  // views into the text

// What can be read of `text`: all of a key's fields, and those before the first fault of any other text.
KeyFields key_fields(std::string_view text);

}  // namespace jitsmith
