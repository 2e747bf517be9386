#include <jitsmith/tools/json.hpp>

#include <jitsmith/tools/output.hpp>

namespace jitsmith {

Json json_of(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return to_string(value);
}

Json json_of(const Params& params) {
  Json object = Json::object();
  for (const auto& [name, value] : params.items()) object[name] = json_of(value);
  return object;
}

void print_json(const Json& json) {
  // Paths and compiler output need not be UTF-8.
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

}  // namespace jitsmith
