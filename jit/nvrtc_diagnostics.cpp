#include <jitsmith/jit/nvrtc_diagnostics.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace jitsmith {
namespace {

constexpr std::string_view k_name_map =
    "__nv_name_map(";  // NVRTC's invented file around the name expressions
constexpr std::size_t k_context_lines = 2;
constexpr std::size_t k_max_excerpts = 8;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_error(std::string_view line) {
  return line.find("error") != std::string_view::npos || line.find("fatal") != std::string_view::npos;
}

struct Place {
  std::string_view file;
  std::size_t line;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// `file(12): error: ...` and its kin; warnings and notes have no excerpt.
std::optional<Place> place_of_error(std::string_view line) {
  const std::size_t close = line.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view message = line.substr(close + 3);
  if (!is_error(message.substr(0, message.find(':')))) return std::nullopt;
  const std::size_t open = line.rfind('(', close);
  if (open == std::string_view::npos) return std::nullopt;
  Place place{line.substr(0, open), 0};
  const char* end = line.data() + close;
  const auto parsed = std::from_chars(line.data() + open + 1, end, place.line);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(place) : std::nullopt;
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
