#include <jitsmith/runtime/request_file.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/json_text.hpp>

namespace jitsmith {
namespace {

using Json = nlohmann::ordered_json;  // people read requests in the order that they wrote

// Together they bound what a hostile file can make of a few bytes of lists.
constexpr std::size_t k_max_file_bytes = 16 << 20;
constexpr std::size_t k_max_requests = 100'000;
constexpr std::size_t k_max_keys = 32;  // also: an ordered_json object is searched key by key
constexpr std::size_t k_max_text_bytes = 64;
constexpr std::size_t k_max_depth = 4;  // the file, its "requests", one of them, a list

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  RequestFile read(std::string_view text) const {
    const Json json = parse_json(text);
    if (!json.is_object()) refuse("it is {}; give an object with \"name\" and \"requests\"", shown(json));
    for (const auto& item : json.items())
      if (item.key() != "name" && item.key() != "requests")
        refuse("the key {} is unknown; give \"name\" and \"requests\"", shown(item.key()));
    const auto name = json.find("name");
    const auto entries = json.find("requests");
    if (name == json.end() || !name->is_string()) refuse("\"name\" is missing or no string; name the set");
    if (entries == json.end() || !entries->is_array())
      refuse("\"requests\" is missing or no list; give a list of objects");

    RequestFile result{.name = name->get<std::string>(), .requests = {}};
    for (std::size_t index = 0; index < entries->size(); ++index)
      for (RawRequest& request : expand((*entries)[index], index, k_max_requests - result.requests.size()))
        result.requests.push_back(std::move(request));
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw InvalidRequest(fmt::format("{}: {}", file_, fmt::format(sentence, std::forward<Args>(args)...)));
  }

  Json parse_json(std::string_view text) const {
    Json json;
    const auto trouble = parse_strictly(text, {.depth = k_max_depth, .keys = k_max_keys}, json);
    if (!trouble) return json;
    switch (trouble->kind) {
      case JsonTrouble::Kind::too_deep:
        refuse("the JSON nests deeper than {} levels; it needs no more", k_max_depth);
      case JsonTrouble::Kind::key_twice:
        refuse("the key {} is twice in one object; give it once", trouble->key);
      case JsonTrouble::Kind::too_many_keys:
        refuse("an object has more than {} keys; give fewer", k_max_keys);
      case JsonTrouble::Kind::number_too_large:
        refuse("a number is too large; give 64-bit integers");
      case JsonTrouble::Kind::malformed:
        break;
    }
    const std::string_view before = text.substr(0, trouble->byte == 0 ? 0 : trouble->byte - 1);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    refuse("line {} column {} is not valid JSON; correct it", line, column);
  }

  // Every combination of the values of one entry, the last key varying fastest.
  std::vector<RawRequest> expand(const Json& entry, std::size_t index, std::size_t room) const {
    if (room == 0) refuse("requests[{}] brings the file over {} requests; give fewer", index, k_max_requests);
    if (!entry.is_object()) refuse("requests[{}] is {}; give an object", index, shown(entry));
    const auto op = entry.find("op");
    if (op == entry.end() || !op->is_string() || op->get_ref<const std::string&>().empty())
      refuse("requests[{}].op is missing or no name; give the name of an op", index);

    std::vector<RawRequest> requests{{.op = text_of(*op, "op", index), .index = index}};
    for (const auto& item : entry.items()) {
      if (item.key() == "op") continue;
      if (item.key().empty() || item.key().size() > k_max_text_bytes)
        refuse("requests[{}] has the key {}; give one of 1 to {} bytes", index, shown(item.key()),
               k_max_text_bytes);
      const Json list = item.value().is_array() ? item.value() : Json::array({item.value()});
      if (list.empty()) refuse("requests[{}].{} is an empty list; give a value", index, item.key());
      if (list.size() > room / requests.size())
        refuse("requests[{}].{} brings the file over {} requests; give fewer values", index, item.key(),
               k_max_requests);
      std::vector<RawRequest> product;
      product.reserve(requests.size() * list.size());
      for (const RawRequest& request : requests)
        for (const Json& value : list) {
          product.push_back(request);
          product.back().params.emplace_back(item.key(), text_of(value, item.key(), index));
        }
      requests = std::move(product);
    }
    return requests;
  }

  std::string text_of(const Json& value, std::string_view key, std::size_t index) const {
    const std::optional<std::string> text = value_text(value);
    if (!text)
      refuse("requests[{}].{} is {}; give an integer, true, false, a string, or a list of these", index, key,
             shown(value));
    if (text->size() > k_max_text_bytes)
      refuse("requests[{}].{} is {}; give at most {} bytes", index, key, shown(value), k_max_text_bytes);
    return *text;
  }

  std::string_view file_;
};

}  // namespace

Params RawRequest::typed(const Schema& schema, std::string_view file) const {
  const std::string owner = fmt::format("{}: requests[{}] ({})", file, index, op);
  Params typed;
  for (const auto& [name, text] : params) typed.set(name, schema.parse(name, text, owner));
  return typed;
}

RequestFile RequestFile::parse(std::string_view text, std::string_view file) {
  return Reader(file).read(text);
}

RequestFile RequestFile::read(const std::string& file) {
  std::string text;
  if (const std::string trouble = read_whole(real_file_system(), file, k_max_file_bytes, text);
      !trouble.empty())
    throw InvalidRequest(fmt::format("{}: the request file can't be read: {}; give another", file, trouble));
  return parse(text, file);
}

std::string to_json(const RequestFile& file) {
  std::string text = fmt::format("{{\"name\": {}, \"requests\": [", dump(Json(file.name)));
  const char* separator = "\n  ";
  for (const RawRequest& request : file.requests) {
    Json entry{{"op", request.op}};
    for (const auto& [name, value] : request.params) entry[name] = value_json<Json>(value);
    text += separator + dump(entry);
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

}  // namespace jitsmith
