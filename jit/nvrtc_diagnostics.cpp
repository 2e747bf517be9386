#include <jitsmith/jit/nvrtc_diagnostics.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/jit/lines.hpp>

namespace jitsmith {
namespace {

constexpr std::string_view k_name_map =
    "__nv_name_map(";  // NVRTC's invented file around the name expressions
constexpr std::size_t k_context_lines = 2;
constexpr std::size_t k_max_excerpts = 8;

bool is_error(std::string_view line) {
  return line.find("error") != std::string_view::npos || line.find("fatal") != std::string_view::npos;
}

struct Place {
  std::string_view file;
  std::size_t line;
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// NVRTC's `file(12): error: ...` and its kin.
std::optional<Place> place_in_parentheses(std::string_view line) {
  const std::size_t close = line.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view message = line.substr(close + 3);
  if (!is_error(message.substr(0, message.find(':')))) return std::nullopt;
  const std::size_t open = line.rfind('(', close);
  if (open == std::string_view::npos) return std::nullopt;
  const auto number = number_in(line.substr(open + 1, close - open - 1));
  return number ? std::optional(Place{line.substr(0, open), *number}) : std::nullopt;
}

// The host compiler's `file:12:34: error: ...`, with or without the column.
std::optional<Place> place_before_colons(std::string_view line) {
  const std::size_t end = std::min(line.find(": error: "), line.find(": fatal error: "));
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view file = line.substr(0, end);
  std::optional<std::size_t> number;
  for (int field = 0; field < 2; ++field) {  // the column, then the line
    const std::size_t colon = file.rfind(':');
    const auto value = colon != std::string_view::npos ? number_in(file.substr(colon + 1)) : std::nullopt;
    if (!value) break;
    number = value;
    file = file.substr(0, colon);
  }
  if (file.starts_with("./")) file.remove_prefix(2);
  return number ? std::optional(Place{file, *number}) : std::nullopt;
}

// Warnings and notes have no excerpt.
std::optional<Place> place_of_error(std::string_view line) {
  const auto place = place_in_parentheses(line);
  return place ? place : place_before_colons(line);
}

const SourceFile* file_of(const SpecializedSource& source, std::string_view path) {
  if (source.main.path == path) return &source.main;
  const auto header = std::find_if(source.headers.begin(), source.headers.end(),
                                   [&](const SourceFile& file) { return file.path == path; });
  return header != source.headers.end() ? &*header : nullptr;
}

std::string excerpt(const SourceFile& file, std::size_t line) {
  const auto lines = lines_of(file.text);
  std::string text = fmt::format("{}:\n", file.path);
  const std::size_t first = line > k_context_lines ? line - k_context_lines : 1;
  for (std::size_t number = first; number <= std::min(line + k_context_lines, lines.size()); ++number)
    text += fmt::format("{} {:4} | {}\n", number == line ? '>' : ' ', number, lines[number - 1]);
  return text;
}

}  // namespace

std::string first_error_line(std::string_view log) {
  const auto lines = lines_of(log);
  auto found = std::find_if(lines.begin(), lines.end(), place_of_error);
  if (found == lines.end()) found = std::find_if(lines.begin(), lines.end(), is_error);
  if (found == lines.end()) found = lines.begin();
  return found != lines.end() ? std::string(*found) : "the compiler gave no reason";
}

bool reports_error(std::string_view log) {
  return std::ranges::any_of(lines_of(log), is_error);
}

std::string name_expression_error(std::string_view log) {
  const std::string line = first_error_line(log);
  if (!line.starts_with(k_name_map)) return {};
  constexpr std::string_view k_marker = "error: ";
  const std::size_t marker = line.find(k_marker);
  return marker != std::string::npos ? line.substr(marker + k_marker.size()) : line;
}

std::string numbered_source_lines(std::string_view log, const SpecializedSource& source) {
  std::string text;
  std::set<Place> shown;
  for (const std::string_view line : lines_of(log)) {
    const auto place = place_of_error(line);
    const SourceFile* file = place ? file_of(source, place->file) : nullptr;
    if (file == nullptr || shown.size() == k_max_excerpts || !shown.insert(*place).second) continue;
    text += excerpt(*file, place->line);
  }
  return text;
}

}  // namespace jitsmith
