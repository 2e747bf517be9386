// RequestFile: a named set of requests, the one format for plan sets, warming, tuning and benches:
//
//   {"name": "deepseek_v3_tp8",
//    "requests": [{"op": "skinny_gemm", "m": [1, 2, 4], "n": 2112, "k": 7168, "out": "bf16"}, ...]}
//
// A list means each of its values; several lists, every combination. Values stay text here: only an op's
// schema knows their types, and the file must be readable without any op.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/schema.hpp>

namespace jitsmith {

struct RawRequest {
  std::string op;
  std::vector<std::pair<std::string, std::string>> params;  // name, value text; in the order of the file
  std::size_t index = 0;  // of the object in "requests", from 0: those that lists expand to share it

  // The parameters as `schema` types them; not yet complete. `file` is for the message of the InvalidRequest
  // that it throws for an unknown name or a value that is not allowed.
  Params typed(const Schema& schema, std::string_view file) const;
};

struct RequestFile {
  std::string name;
  std::vector<RawRequest> requests;  // lists expanded

  // Throws InvalidRequest that names the file, the place in it, and the rule.
  static RequestFile parse(std::string_view text, std::string_view file);
  static RequestFile read(const std::string& file);
};

// One request a line, no lists. Parsing it gives the same requests in the same order.
std::string to_json(const RequestFile& file);

}  // namespace jitsmith
