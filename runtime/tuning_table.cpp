#include <jitsmith/runtime/tuning_table.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <set>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/names.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_max_file_bytes = 16 << 20;
constexpr std::size_t k_max_line_bytes = 64 << 10;  // a row has about 400 bytes
constexpr std::size_t k_max_depth = 3;              // the row, its `when`, a range
constexpr std::size_t k_max_problems = 100;         // a file of another format is bad on every line
constexpr std::string_view k_published = "published, not measured here";

// Within this file a bad line is an InvalidRequest; TuningTable::parse makes a problem of it.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) {
  throw InvalidRequest(fmt::format(sentence, std::forward<Args>(args)...));
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// For a message: on one line, in ASCII, short, whatever the file has.
std::string shown(const Json& json) {
  std::string text = dump(json);
  if (text.size() > 60) text.replace(57, std::string::npos, "...");
  return text;
}

// JSON itself lets a key appear twice and arrays nest without end.
Json parse_strictly(std::string_view line) {
  std::vector<std::set<std::string>> keys;  // of each open object
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (level >= k_max_depth)
        refuse("the JSON nests deeper than {} levels, which no row does", k_max_depth);
      keys.resize(level);  // forgets what was at this level before
      keys.emplace_back();
    }
    if (event == Json::parse_event_t::key && !keys[level - 1].insert(parsed.get<std::string>()).second)
      refuse("the key {} is there twice; give it once", shown(parsed));
    return true;
  };
  try {
    return Json::parse(line, check);
  } catch (const Json::parse_error& error) {
    refuse("column {} is not valid JSON; write one JSON object a line", error.byte);
  } catch (const Json::exception&) {
    refuse("a number is too large; give one that a double can hold");
  }
}

void require_keys(const Json& object, std::string_view what, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) refuse("{} is {}; give an object", what, shown(object));
  for (const auto& item : object.items())
    if (std::ranges::find(known, item.key()) == known.end())
      refuse("{} has the unknown key {}; its keys are {}", what, shown(item.key()), fmt::join(known, ", "));
}

const Json& field(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end()) refuse("'{}' is missing; give it", key);
  return *found;
}

std::optional<std::int64_t> integer_in(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return json.get<std::int64_t>();
}

std::string text_field(const Json& object, std::string_view key) {
  const Json& json = field(object, key);
  if (!json.is_string() || json.get_ref<const std::string&>().empty())
    refuse("'{}' is {}; give a string that is not empty", key, shown(json));
  return json.get<std::string>();
}

std::int64_t positive_field(const Json& object, std::string_view key, std::int64_t max) {
  const Json& json = field(object, key);
  const std::optional<std::int64_t> value = integer_in(json);
  if (!value || *value < 1 || *value > max)
    refuse("'{}' is {}; give an integer from 1 to {}", key, shown(json), max);
  return *value;
}

double time_field(const Json& object, std::string_view key) {
  const Json& json = field(object, key);
  if (!json.is_number() || json.get<double>() <= 0)
    refuse("'{}' is {}; give a time above zero", key, shown(json));
  return json.get<double>();
}

std::string value_text(const Json& json, std::string_view key) {
  if (const std::optional<std::int64_t> value = integer_in(json)) return fmt::format("{}", *value);
  if (json.is_boolean()) return json.get<bool>() ? "true" : "false";
  if (!json.is_string())
    refuse("{} is {}; give an integer, true, false or a string", shown(key), shown(json));
  return json.get<std::string>();
}

// The inverse of value_text.
Json value_json(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && fmt::format("{}", number) == text)
    return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

TableRow::Condition parse_condition(const Json& json, std::string_view key) {
  if (!json.is_array()) return value_text(json, key);
  const std::optional<std::int64_t> low = json.size() == 2 ? integer_in(json[0]) : std::nullopt;
  const std::optional<std::int64_t> high = json.size() == 2 ? integer_in(json[1]) : std::nullopt;
  if (!low || !high || *low > *high)
    refuse("{} is {}; a range is two integers, [low, high], with low <= high", shown(key), shown(json));
  return std::pair{*low, *high};
}

Measurement parse_measurement(const Json& json) {
  require_keys(json, "'measured'", {"us", "replaced", "replaced_us", "rounds", "rounds_overlap"});
  Measurement measured{.us = time_field(json, "us"),
                       .replaced = text_field(json, "replaced"),
                       .replaced_us = time_field(json, "replaced_us"),
                       .rounds = positive_field(json, "rounds", std::numeric_limits<std::int64_t>::max())};
  const Json& overlap = field(json, "rounds_overlap");
  if (!overlap.is_boolean()) refuse("'rounds_overlap' is {}; give true or false", shown(overlap));
  measured.rounds_overlap = overlap.get<bool>();
  return measured;
}

void admit(const TableRow& row) {
  if (!row.measured) {
    const auto note = row.provenance.find("note");
    if (note == row.provenance.end() || note->second.find(k_published) == std::string::npos)
      refuse("the row has no 'measured'; measure it, or say '{}' in the note of its provenance", k_published);
    return;
  }
  const Measurement& m = *row.measured;
  constexpr double k_rounding = 1 + 1e-12;  // 2.85 counts as 5 % less than 3
  if (m.us > 0.95 * m.replaced_us * k_rounding)
    refuse("{} us is not 5 % faster than {} us of {}; a row must be", m.us, m.replaced_us, shown(m.replaced));
  if (m.rounds_overlap) refuse("the rounds overlap; a row needs rounds that don't");
}

TableRow parse_row(std::string_view line) {
  if (line.size() > k_max_line_bytes)
    refuse("the line has {} bytes; a row has at most {}", line.size(), k_max_line_bytes);
  const Json json = parse_strictly(line);
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
    if (!object.is_object()) refuse("'{}' is {}; give an object", key, shown(object));
    return object;
  };
  for (const auto& item : object_field("when").items())
    row.when.emplace(item.key(), parse_condition(item.value(), item.key()));
  for (const auto& item : object_field("params").items())
    row.params.emplace_back(item.key(), value_text(item.value(), item.key()));
  if (json.contains("measured")) row.measured = parse_measurement(json["measured"]);
  if (json.contains("provenance"))
    for (const auto& item : object_field("provenance").items()) {
      if (!item.value().is_string())
        refuse("{} is {}; provenance is strings", shown(item.key()), shown(item.value()));
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
      when[name] = value_json(std::get<std::string>(condition));
  }
  Json& params = json["params"] = Json::object();
  for (const auto& [name, text] : row.params) params[name] = value_json(text);
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

std::string message(int error) {
  return std::generic_category().message(error);
}

// Why it can't, or "".
std::string read_whole(const std::string& file, std::string& text) {
  FileSystem& fs = real_file_system();
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor opened(fs, fs.open_at(AT_FDCWD, file.c_str(), O_RDONLY | O_NONBLOCK));
  if (!opened.is_open()) return message(opened.error());
  struct ::stat stat {};
  if (const int result = fs.stat(opened.get(), stat); result < 0) return message(-result);
  if (!S_ISREG(stat.st_mode)) return "it is no regular file";
  if (static_cast<std::uint64_t>(stat.st_size) > k_max_file_bytes)
    return fmt::format("it has more than {} bytes", k_max_file_bytes);
  text.resize(static_cast<std::size_t>(stat.st_size));
  const ssize_t got = fs.read_full(opened.get(), std::as_writable_bytes(std::span(text)));
  if (got < 0) return message(static_cast<int>(-got));
  text.resize(static_cast<std::size_t>(got));
  return {};
}

int write_and_close(FileSystem& fs, Descriptor file, std::string_view text) {
  if (text.size() > fs.file_size_limit()) return EFBIG;  // the write would raise SIGXFSZ
  if (const int result = fs.write_full(file.get(), std::as_bytes(std::span(text))); result < 0)
    return -result;
  if (const int result = fs.sync(file.get()); result < 0) return -result;
  return -file.close();
}

}  // namespace

TuningTable TuningTable::parse(std::string_view text, std::string_view file_name,
                               std::vector<std::string>& problems) {
  TuningTable table;
  std::size_t bad_lines = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      table.rows_.push_back(parse_row(line));
    } catch (const InvalidRequest& problem) {
      if (++bad_lines <= k_max_problems)
        problems.push_back(fmt::format("{}:{}: {}", file_name, number, problem.what()));
    }
  }
  if (bad_lines > k_max_problems)
    problems.push_back(
        fmt::format("{}: {} more lines are bad and skipped", file_name, bad_lines - k_max_problems));
  return table;
}

TuningTable TuningTable::read(const std::string& file, std::vector<std::string>& problems) {
  std::string text;
  if (const std::string trouble = read_whole(file, text); !trouble.empty()) {
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
  FileSystem& fs = real_file_system();
  const std::string bytes = text();
  const std::string temporary =
      std::filesystem::path(file).replace_filename(random_temporary_name().value_or(".t"));
  Descriptor opened(fs, fs.open_at(AT_FDCWD, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
  int error = opened.error();
  if (error == 0) {
    error = write_and_close(fs, std::move(opened), bytes);
    if (error == 0) error = -fs.rename_at(AT_FDCWD, temporary.c_str(), file.c_str());
    if (error != 0) fs.unlink_at(AT_FDCWD, temporary.c_str());
  }
  if (error != 0)
    throw InvalidRequest(
        fmt::format("the table '{}' can't be written: {}; give another path", file, message(error)));
}

void TuningTable::add(TableRow row) {
  std::ranges::sort(row.params);  // the order that parse(text()) gives
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
