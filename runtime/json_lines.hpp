// JSON Lines files that people edit and programs append to: a bad line costs itself and nothing else.
// Private.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/lines.hpp>

namespace jitsmith {

// Calls `take(line, number)` for every line that is not blank, numbers from 1. An InvalidRequest that it
// throws becomes "file:number: sentence" in `problems`; of more than `most_problems` the rest is only
// counted.
template <class Take>
void for_each_json_line(std::string_view text, std::string_view file, std::size_t most_problems,
                        std::vector<std::string>& problems, const Take& take) {
  std::size_t bad_lines = 0;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      take(line, number);
    } catch (const InvalidRequest& problem) {
      if (++bad_lines <= most_problems)
        problems.push_back(fmt::format("{}:{}: {}", file, number, problem.what()));
    }
  }
  if (bad_lines > most_problems)
    problems.push_back(fmt::format("{}: {} more lines are bad and skipped", file, bad_lines - most_problems));
}

}  // namespace jitsmith
