#include <jitsmith/runtime/recording.hpp>

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/json_fields.hpp>
#include <jitsmith/runtime/json_lines.hpp>
#include <jitsmith/runtime/json_text.hpp>

namespace jitsmith {
namespace {

using Json = nlohmann::ordered_json;  // a template's parameters have an order

constexpr std::size_t k_max_line_bytes = 64 << 10;  // a record has about 300 bytes
constexpr std::size_t k_max_depth = 2;              // the record, its `params`
constexpr std::size_t k_max_keys = 64;              // an ordered_json object is searched key by key
constexpr std::size_t k_max_problems = 100;         // a file of another format is bad on every line
constexpr std::array<std::string_view, 5> k_keys{"op", "arch", "variant", "params", "request"};

Json parse_json(std::string_view line) {
  if (line.size() > k_max_line_bytes)
    refuse_line("the line has {} bytes; a record has at most {}", line.size(), k_max_line_bytes);
  Json json;
  const auto trouble = parse_strictly(line, {.depth = k_max_depth, .keys = k_max_keys}, json);
  if (!trouble) return json;
  switch (trouble->kind) {
    case JsonTrouble::Kind::too_deep:
      refuse_line("the JSON nests deeper than {} levels, which no record does", k_max_depth);
    case JsonTrouble::Kind::key_twice:
      refuse_line("the key {} is there twice; give it once", trouble->key);
    case JsonTrouble::Kind::too_many_keys:
      refuse_line("an object has more than {} keys; no record does", k_max_keys);
    case JsonTrouble::Kind::number_too_large:
      refuse_line("a number is too large; give 64-bit integers");
    case JsonTrouble::Kind::malformed:
      break;
  }
  refuse_line("column {} is not valid JSON; write one JSON object a line", trouble->byte);
}

NamedTexts texts_field(const Json& object, std::string_view key) {
  const Json& json = field(object, key);
  if (!json.is_object()) refuse_line("'{}' is {}; give an object", key, shown(json));
  NamedTexts texts;
  for (const auto& item : json.items()) {
    std::optional<std::string> text = value_text(item.value());
    if (!text)
      refuse_line("{} is {}; give an integer, true, false or a string", shown(item.key()),
                  shown(item.value()));
    texts.emplace_back(item.key(), *std::move(text));
  }
  return texts;
}

Json json_of(const NamedTexts& texts) {
  Json json = Json::object();
  for (const auto& [name, text] : texts) json[name] = value_json<Json>(text);
  return json;
}

}  // namespace

NamedTexts texts_of(const Params& params) {
  NamedTexts texts;
  for (const auto& [name, value] : params.items()) texts.emplace_back(name, to_string(value));
  return texts;
}

Params typed(const NamedTexts& texts, const Schema& schema, std::string_view owner) {
  Params params;
  for (const auto& [name, text] : texts) params.set(name, schema.parse(name, text, owner));
  return params;
}

KernelRecord KernelRecord::parse(std::string_view line) {
  const Json json = parse_json(line);
  if (!json.is_object()) refuse_line("the record is {}; give an object", shown(json));
  for (const auto& item : json.items())
    if (std::ranges::find(k_keys, item.key()) == k_keys.end())
      refuse_line("the key {} is unknown; a record has op, arch, variant, params and request",
                  shown(item.key()));
  KernelRecord record{.op = text_field(json, "op"),
                      .arch = text_field(json, "arch"),
                      .variant = text_field(json, "variant"),
                      .params = texts_field(json, "params"),
                      .request = std::nullopt};
  if (json.contains("request")) record.request = texts_field(json, "request");
  // Printed in ASCII a line can grow: one that could not be read back is not taken either.
  if (to_json(record).size() > k_max_line_bytes)
    refuse_line("the record has more than {} bytes in ASCII; no record does", k_max_line_bytes);
  return record;
}

std::string to_json(const KernelRecord& record) {
  Json json{{"op", record.op},
            {"arch", record.arch},
            {"variant", record.variant},
            {"params", json_of(record.params)}};
  if (record.request) json["request"] = json_of(*record.request);
  return dump(json);
}

Recording Recording::parse(std::string_view text, std::string_view file, std::vector<std::string>& problems,
                           const Use& use) {
  Recording recording;
  std::unordered_set<std::string> known;
  const auto take = [&](std::string_view line, std::size_t number) {
    KernelRecord record = KernelRecord::parse(line);
    if (!known.insert(to_json(record)).second) return;
    if (use) use(record);
    recording.lines.push_back({number, std::move(record)});
  };
  for_each_json_line(text, file, k_max_problems, problems, [&](std::string_view line, std::size_t number) {
    try {
      take(line, number);
    } catch (const InvalidRequest&) {
      if (Json::accept(line)) throw;
      if (recording.torn_lines++ == 0) recording.first_torn_line = number;
    }
  });
  return recording;
}

Recording Recording::read(const std::string& file, std::vector<std::string>& problems, const Use& use) {
  std::string text;
  if (const std::string trouble = read_whole(real_file_system(), file, k_max_recording_bytes, text);
      !trouble.empty())
    throw InvalidRequest(fmt::format("{}: the recording can't be read: {}; give another", file, trouble));
  return parse(text, file, problems, use);
}

std::string Recording::text() const {
  std::string text;
  for (const Line& line : lines) text += to_json(line.record) + '\n';
  return text;
}

}  // namespace jitsmith
