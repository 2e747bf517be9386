// JSON for programs: parameters with their own types, keys in the order in which people would read them.
#pragma once

#include <nlohmann/json.hpp>

#include <jitsmith/jit/params.hpp>

namespace jitsmith {

using Json = nlohmann::ordered_json;

Json json_of(const Value& value);
Json json_of(const Params& params);  // an object

void print_json(const Json& json);

}  // namespace jitsmith
