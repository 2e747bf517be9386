#include <jitsmith/tools/request_args.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

constexpr std::string_view k_variant = "variant";

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InvalidRequest(fmt::format("{} '{}' is not of the form name=value; write it so", option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Params RequestArgs::typed(const Schema& schema) const {
  Params params;
  bool variant_seen = false;
  for (const std::string& set : sets) {
    const auto [name, text] = split_assignment("--set", set);
    const bool seen = name == k_variant ? std::exchange(variant_seen, true) : params.find(name) != nullptr;
    if (seen) throw InvalidRequest(fmt::format("--set {} is given twice; give it once", name));
    if (name != k_variant) params.set(name, schema.parse(name, text, op));
  }
  return params;
}

std::optional<ForcedChoice> RequestArgs::forced() const {
  for (const std::string& set : sets)
    if (const auto [name, text] = split_assignment("--set", set); name == k_variant)
      return ForcedChoice::parse(text);
  return std::nullopt;
}

void add_request_args(Arguments& arguments, RequestArgs& args, bool op_required) {
  constexpr const char* help = "The op; `jitsmith list` names them";
  op_required ? arguments.required("op", args.op, "OP", help) : arguments.text("op", args.op, "OP", help);
  arguments.repeated(
      "--set", args.sets, "NAME=VALUE",
      "A request parameter, or variant=NAME[:parameter=value,...] to force the choice; may be repeated");
}

}  // namespace jitsmith
