// OP --set name=value ...: how explain, run and warm are told a request.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <jitsmith/jit/schema.hpp>
#include <jitsmith/runtime/selection.hpp>
#include <jitsmith/tools/arguments.hpp>

namespace jitsmith {

struct RequestArgs {
  std::string op;
  std::vector<std::string> sets;  // name=value; of the name `variant`, the forced choice

  // The request parameters as `schema` types them. Throws InvalidRequest for a text of another form, a name
  // given twice or unknown, a value that is not allowed.
  Params typed(const Schema& schema) const;

  std::optional<ForcedChoice> forced() const;
};

void add_request_args(Arguments& arguments, RequestArgs& args, bool op_required);

// "--NAME a=b" split at the first '='. Throws InvalidRequest when there is none.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);

}  // namespace jitsmith
