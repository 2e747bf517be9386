// OP --set name=value ...: how explain, run and warm are told a request.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/options.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace jitsmith {

struct RequestArgs {
  std::string op;
  std::vector<std::string> sets;  // name=value; of the name `variant`, the forced choice

  // The request parameters as `schema` types them. Throws InvalidRequest for a text of another form, a name
  // given twice or unknown, a value that is not allowed.
  Params typed(const Schema& schema) const;

  // The same options with the forced choice, if there is one.
  Options forced(Options options) const;
};

// Declares both; returns OP, so that a sub-command can make it required.
CLI::Option* add_request_args(CLI::App& app, RequestArgs& args);

// "--NAME a=b" split at the first '='. Throws InvalidRequest when there is none.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);

}  // namespace jitsmith
