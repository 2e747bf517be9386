// jitsmith list: the ops, in a line each.
#include <memory>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

int list(Options options, bool as_json) {
  options.cold = true;  // nothing is compiled or loaded
  const Engine engine(std::move(options));
  Json json = Json::array();
  for (const Op* op : engine.ops()) {
    Json variants = Json::array();
    for (const Variant& variant : op->variants) variants.push_back(variant.name);
    json.push_back({{"name", op->name}, {"summary", op->summary}, {"variants", std::move(variants)}});
    if (!as_json) print(fmt::format("{:<20} {}\n", op->name, op->summary));
  }
  if (as_json) print_json(json);
  return k_success;
}

}  // namespace

SubCommand list_command(Arguments& app) {
  Arguments arguments = app.sub_command("list", "The ops that there are");
  const auto as_json = std::make_shared<bool>(false);
  arguments.flag("--json", *as_json, "Print JSON");
  return {arguments, [as_json](Options options) { return list(std::move(options), *as_json); }};
}

}  // namespace jitsmith
