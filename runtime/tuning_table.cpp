#include <jitsmith/runtime/tuning_table.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/json_fields.hpp>
#include <jitsmith/runtime/json_lines.hpp>
#include <jitsmith/runtime/json_text.hpp>

namespace jitsmith {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_max_file_bytes = 16 << 20;
constexpr std::size_t k_max_line_bytes = 64 << 10;  // a row has about 400 bytes
constexpr std::size_t k_max_depth = 3;              // the row, its `when`, a range
constexpr std::size_t k_max_problems = 100;         // a file of another format is bad on every line
constexpr std::string_view k_published = "published, not measured here";

Json parse_json(std::string_view line) {
  Json json;
  const std::optional<JsonTrouble> trouble = parse_strictly(line, {.depth = k_max_depth}, json);
  if (!trouble) return json;
  switch (trouble->kind) {
    case JsonTrouble::Kind::too_deep:
      refuse_line("the JSON nests deeper than {} levels, which no row does", k_max_depth);
    case JsonTrouble::Kind::key_twice:
      refuse_line("the key {} is there twice; give it once", trouble->key);
    case JsonTrouble::Kind::number_too_large:
      refuse_line("a number is too large; give one that a double can hold");
    default:
      refuse_line("column {} is not valid JSON; write one JSON object a line", trouble->byte);
  }
}

void require_keys(const Json& object, std::string_view what, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) refuse_line("{} is {}; give an object", what, shown(object));
  for (const auto& item : object.items())
    if (std::ranges::find(known, item.key()) == known.end())
      refuse_line("{} has the unknown key {}; its keys are {}", what, shown(item.key()),
                  fmt::join(known, ", "));
}

std::int64_t positive_field(const Json& object, std::string_view key, std::int64_t max) {
  const Json& json = field(object, key);
  const std::optional<std::int64_t> value = integer_in(json);
  if (!value || *value < 1 || *value > max)
    refuse_line("'{}' is {}; give an integer from 1 to {}", key, shown(json), max);
  return *value;
}

double time_field(const Json& object, std::string_view key) {
  const Json& json = field(object, key);
  if (!json.is_number() || json.get<double>() <= 0)
    refuse_line("'{}' is {}; give a time above zero", key, shown(json));
  return json.get<double>();
}

std::string value_of(const Json& json, std::string_view key) {
  std::optional<std::string> text = value_text(json);
  if (!text) refuse_line("{} is {}; give an integer, true, false or a string", shown(key), shown(json));
  return std::move(*text);
}

TableRow::Condition parse_condition(const Json& json, std::string_view key) {
  if (!json.is_array()) return value_of(json, key);
  const std::optional<std::int64_t> low = json.size() == 2 ? integer_in(json[0]) : std::nullopt;
  const std::optional<std::int64_t> high = json.size() == 2 ? integer_in(json[1]) : std::nullopt;
  if (!low || !high || *low > *high)
    refuse_line("{} is {}; a range is two integers, [low, high], with low <= high", shown(key), shown(json));
  return std::pair{*low, *high};
}

Measurement parse_measurement(const Json& json) {
  require_keys(json, "'measured'", {"us", "replaced", "replaced_us", "rounds", "rounds_overlap"});
  Measurement measured{.us = time_field(json, "us"),
                       .replaced = text_field(json, "replaced"),
                       .replaced_us = time_field(json, "replaced_us"),
                       .rounds = positive_field(json, "rounds", std::numeric_limits<std::int64_t>::max())};
  const Json& overlap = field(json, "rounds_overlap");
  if (!overlap.is_boolean()) refuse_line("'rounds_overlap' is {}; give true or false", shown(overlap));
  measured.rounds_overlap = overlap.get<bool>();
  return measured;
}

void admit(const TableRow& row) {
  if (!row.measured) {
    const auto note = row.provenance.find("note");
    if (note == row.provenance.end() || note->second.find(k_published) == std::string::npos)
      refuse_line("the row has no 'measured'; measure it, or say '{}' in the note of its provenance",
                  k_published);
    return;
  }
  const Measurement& m = *row.measured;
  constexpr double k_rounding = 1 + 1e-12;  // 2.85 counts as 5 % less than 3
  if (m.us > 0.95 * m.replaced_us * k_rounding)
    refuse_line("{} us is not 5 % faster than {} us of {}; a row must be", m.us, m.replaced_us,
                shown(m.replaced));
  if (m.rounds_overlap) refuse_line("the rounds overlap; a row needs rounds that don't");
}

TableRow parse_row(std::string_view line) {
  if (line.size() > k_max_line_bytes)
    refuse_line("the line has {} bytes; a row has at most {}", line.size(), k_max_line_bytes);
  const Json json = parse_json(line);
  require_keys(json, "the row",
               {"op", "arch", "multiprocessors", "when", "variant", "params", "measured", "provenance"});
  TableRow row;
  row.op = text_field(json, "op");
  row.arch = text_field(json, "arch");
  if (json.contains("multiprocessors"))
    row.multiprocessors = static_cast<std::uint32_t>(
        positive_field(json, "multiprocessors", std::numeric_limits<std::uint32_t>::max()));
  row.variant = text_field(json, "variant");

  const auto object_field = [&](std::string_view key) -> const Json& {
    const Json& object = field(json, key);
    if (!object.is_object()) refuse_line("'{}' is {}; give an object", key, shown(object));
    return object;
  };
  for (const auto& item : object_field("when").items())
    row.when.emplace(item.key(), parse_condition(item.value(), item.key()));
  for (const auto& item : object_field("params").items())
    row.params.emplace_back(item.key(), value_of(item.value(), item.key()));
  if (json.contains("measured")) row.measured = parse_measurement(json["measured"]);
  if (json.contains("provenance"))
    for (const auto& item : object_field("provenance").items()) {
      if (!item.value().is_string())
        refuse_line("{} is {}; provenance is strings", shown(item.key()), shown(item.value()));
      row.provenance.emplace(item.key(), item.value().get<std::string>());
    }
  admit(row);
  return row;
}

Json to_json(const TableRow& row) {
  Json json{{"op", row.op}, {"arch", row.arch}, {"variant", row.variant}};
  if (row.multiprocessors) json["multiprocessors"] = *row.multiprocessors;
  Json& when = json["when"] = Json::object();
  for (const auto& [name, condition] : row.when) {
    if (const auto* range = std::get_if<std::pair<std::int64_t, std::int64_t>>(&condition))
      when[name] = {range->first, range->second};
    else
      when[name] = value_json<Json>(std::get<std::string>(condition));
  }
  Json& params = json["params"] = Json::object();
  for (const auto& [name, text] : row.params) params[name] = value_json<Json>(text);
  if (const auto& m = row.measured)
    json["measured"] = {{"us", m->us},
                        {"replaced", m->replaced},
                        {"replaced_us", m->replaced_us},
                        {"rounds", m->rounds},
                        {"rounds_overlap", m->rounds_overlap}};
  if (!row.provenance.empty()) json["provenance"] = row.provenance;
  return json;
}

bool holds(const TableRow::Condition& condition, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&condition)) return to_string(value) == *text;
  const auto [low, high] = std::get<std::pair<std::int64_t, std::int64_t>>(condition);
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer != nullptr && low <= *integer && *integer <= high;
}

// How many exact conditions the row has, or nothing when it doesn't answer the request.
std::optional<int> exactness(const TableRow& row, std::string_view op, const Params& request,
                             const DeviceFacts& device) {
  if (row.op != op || row.arch != device.target.arch) return std::nullopt;
  if (row.multiprocessors.value_or(device.multiprocessors) != device.multiprocessors) return std::nullopt;
  int exact = row.multiprocessors ? 1 : 0;
  for (const auto& [name, condition] : row.when) {
    const Value* value = request.find(name);
    if (value == nullptr || !holds(condition, *value)) return std::nullopt;
    if (std::holds_alternative<std::string>(condition)) ++exact;
  }
  return exact;
}

}  // namespace

TuningTable TuningTable::parse(std::string_view text, std::string_view file_name,
                               std::vector<std::string>& problems) {
  TuningTable table;
  for_each_json_line(text, file_name, k_max_problems, problems,
                     [&](std::string_view line, std::size_t) { table.rows_.push_back(parse_row(line)); });
  return table;
}

TuningTable TuningTable::read(const std::string& file, std::vector<std::string>& problems) {
  std::string text;
  if (const std::string trouble = read_whole(real_file_system(), file, k_max_file_bytes, text);
      !trouble.empty()) {
    problems.push_back(fmt::format("{}: the table can't be read: {}", file, trouble));
    return {};
  }
  return parse(text, file, problems);
}

std::string TuningTable::text() const {
  std::string text;
  for (const TableRow& row : rows_) text += dump(to_json(row)) + '\n';
  return text;
}

void TuningTable::write(const std::string& file) const {
  const std::string bytes = text();
  if (const int error = replace_whole(real_file_system(), file, {std::as_bytes(std::span(bytes))});
      error != 0)
    throw InvalidRequest(
        fmt::format("the table '{}' can't be written: {}; give another path", file, message_of_errno(error)));
}

void TuningTable::add(TableRow row) {
  // What the text can't say must not be in the table either: a row that works today would be dropped when the
  // table is read back.
  row = parse_row(dump(to_json(row)));
  const auto same = std::ranges::find_if(rows_, [&](const TableRow& other) {
    return other.op == row.op && other.arch == row.arch && other.multiprocessors == row.multiprocessors &&
           other.when == row.when;
  });
  if (same == rows_.end())
    rows_.push_back(std::move(row));
  else
    *same = std::move(row);
}

const TableRow* TuningTable::match(std::string_view op, const Params& request,
                                   const DeviceFacts& device) const {
  const TableRow* best = nullptr;
  std::optional<int> best_exactness;
  for (const TableRow& row : rows_) {
    const std::optional<int> exact = exactness(row, op, request, device);
    if (exact <= best_exactness) continue;  // nothing is less than any number
    best = &row;
    best_exactness = exact;
  }
  return best;
}

}  // namespace jitsmith
