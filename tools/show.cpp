// jitsmith show OP: everything that an op's schemas say. One JSON value is made of them; the text is a
// rendering of it.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

Json json_of(const Schema& schema) {
  Json params = Json::array();
  for (const ParamSpec& spec : schema.params()) {
    Json param{{"name", spec.name}, {"allowed", spec.allowed()}, {"meaning", spec.meaning}};
    if (spec.fallback) param["default"] = jitsmith::json_of(*spec.fallback);
    params.push_back(std::move(param));
  }
  Json rules = Json::array();
  for (const Rule& rule : schema.rules()) rules.push_back(rule.sentence);
  return {{"parameters", std::move(params)}, {"rules", std::move(rules)}};
}

Json json_of(const std::vector<ArraySpec>& specs) {
  Json arrays = Json::array();
  for (const ArraySpec& spec : specs)
    arrays.push_back({{"name", spec.name}, {"meaning", spec.meaning}, {"required", spec.required}});
  return arrays;
}

// A request parameter is baked into a variant's code when its template has a parameter of that name. Only
// template parameters reach the key, so one binary serves all values of the others.
Json runtime_values(const Op& op, const Variant& variant) {
  Json names = Json::array();
  for (const ParamSpec& param : op.request.params()) {
    const auto& baked = variant.kernel.schema.params();
    if (std::ranges::find(baked, param.name, &ParamSpec::name) == baked.end()) names.push_back(param.name);
  }
  return names;
}

Json json_of(const Op& op) {
  Json variants = Json::array();
  for (const Variant& variant : op.variants)
    variants.push_back({{"name", variant.name},
                        {"generic", variant.name == op.generic_variant},
                        {"summary", variant.summary},
                        {"template", variant.kernel.path},
                        {"function", variant.kernel.function},
                        {"baked_in", json_of(variant.kernel.schema)},
                        {"runtime_values", runtime_values(op, variant)}});
  Json json{
      {"name", op.name}, {"summary", op.summary}, {"request", json_of(op.request)}, {"variants", variants}};
  if (op.arrays)
    json["arrays"] = {{"inputs", json_of(op.arrays->inputs)}, {"outputs", json_of(op.arrays->outputs)}};
  return json;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_schema(const Json& schema) {
  for (const Json& param : schema["parameters"]) {
    const auto fallback = param.find("default");
    print(fmt::format("  {:<16} {}\n{:19}{}, {}\n", text_of(param["name"]), text_of(param["meaning"]), "",
                      text_of(param["allowed"]),
                      fallback == param.end() ? "required" : "default " + text_of(*fallback)));
  }
  for (const Json& rule : schema["rules"]) print(fmt::format("  refused: {}\n", text_of(rule)));
}

void print_op(const Json& op) {
  print(fmt::format("{}: {}\n\nRequest (--set):\n", text_of(op["name"]), text_of(op["summary"])));
  print_schema(op["request"]);
  for (const Json& variant : op["variants"]) {
    print(fmt::format("\nVariant {}{} of {} in {}:\n  {}\n Baked into the code:\n", text_of(variant["name"]),
                      variant["generic"].get<bool>() ? ", the generic one," : "",
                      text_of(variant["function"]), text_of(variant["template"]),
                      text_of(variant["summary"])));
    print_schema(variant["baked_in"]);
    print(fmt::format(" Run-time values, one binary serves them all: {}\n",
                      fmt::join(variant["runtime_values"].get<std::vector<std::string>>(), ", ")));
  }
  if (!op.contains("arrays")) return;
  print("\nArrays (jitsmith run):\n");
  for (const auto& [direction, specs] : op["arrays"].items())
    for (const Json& spec : specs)
      print(fmt::format("  {:<4} {:<12} {}{}\n", direction == "inputs" ? "in" : "out", text_of(spec["name"]),
                        text_of(spec["meaning"]), spec["required"].get<bool>() ? "" : ", optional"));
}

struct ShowArgs {
  std::string op;
  bool json = false;
};

int show(Options options, const ShowArgs& args) {
  options.cold = true;  // nothing is compiled or loaded
  const Engine engine(std::move(options));
  const Json op = json_of(engine.op(args.op));
  args.json ? print_json(op) : print_op(op);
  return k_success;
}

}  // namespace

SubCommand show_command(Arguments& app) {
  Arguments arguments = app.sub_command("show", "What an op's requests and templates may say");
  const auto args = std::make_shared<ShowArgs>();
  arguments.required("op", args->op, "OP", "The op; `jitsmith list` names them");
  arguments.flag("--json", args->json, "Print JSON");
  return {arguments, [args](Options options) { return show(std::move(options), *args); }};
}

}  // namespace jitsmith
