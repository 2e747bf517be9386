// "1 entry", "2 entries": a number of things in a message to people. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace jitsmith {

inline std::string plural(std::uint64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  const bool ends_in_y = noun.ends_with('y');
  return fmt::format("{} {}{}", count, noun.substr(0, noun.size() - ends_in_y), ends_in_y ? "ies" : "s");
}

}  // namespace jitsmith
