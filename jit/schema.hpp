// Schema: the one declaration of a set of parameters. Validation, the instantiation text, the key, `jitsmith
// show` and the documentation all derive from it; nothing of it is listed twice.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <jitsmith/jit/params.hpp>

namespace jitsmith {

// The integers a parameter may take: the listed ones if there are any, else the multiples of `multiple_of` in
// [min, max].
struct IntegerSet {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::int64_t multiple_of = 1;
  std::vector<std::int64_t> listed;

  bool contains(std::int64_t value) const;
  std::string describe() const;  // "a multiple of 32 from 32 to 1024", "one of 1, 2, 4"
};

enum class ParamKind { integer, boolean, choice, type };

struct ParamSpec {
  std::string name;
  ParamKind kind;
  std::string meaning;  // one phrase for people, with the unit
  IntegerSet integers;
  std::vector<std::string> choices;
  std::string device_enum;  // the C++ enum that `choices` name, when the parameter is one of a template
  std::vector<ElementType> types;
  std::optional<Value> fallback;  // the default; a parameter without one is required

  std::string allowed() const;  // "an integer from 1 to 32", "bf16 or f32", ...
};

// A condition between parameters. In `sentence`, {name} stands for the value of a parameter.
struct Rule {
  std::string sentence;
  std::function<bool(const Params&)> holds;
};

class Schema {
 public:
  // Each adds one parameter; the order is that of the C++ template's parameters.
  Schema& integer(std::string name, IntegerSet allowed, std::string meaning,
                  std::optional<std::int64_t> fallback = std::nullopt);
  Schema& boolean(std::string name, std::string meaning, std::optional<bool> fallback = std::nullopt);
  Schema& choice(std::string name, std::vector<std::string> choices, std::string meaning,
                 std::optional<std::string> fallback = std::nullopt, std::string device_enum = {});
  Schema& type(std::string name, std::vector<ElementType> types, std::string meaning,
               std::optional<ElementType> fallback = std::nullopt);
  Schema& rule(std::string sentence, std::function<bool(const Params&)> holds);

  // The complete parameters in schema order: defaults filled in, everything checked. Throws InvalidRequest
  // that names `owner` ("skinny_gemm"), the parameter, its value and the rule.
  Params complete(const Params& given, std::string_view owner) const;

  // The value that `text` spells for parameter `name` ("true", "128", "bf16"); throws InvalidRequest like
  // complete().
  Value parse(std::string_view name, std::string_view text, std::string_view owner) const;

  // "128, true, jitsmith::bf16": the C++ template arguments of complete parameters.
  std::string template_arguments(const Params& complete) const;

  const std::vector<ParamSpec>& params() const { return params_; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  const ParamSpec& spec(std::string_view name, std::string_view owner) const;

  std::vector<ParamSpec> params_;
  std::vector<Rule> rules_;
};

}  // namespace jitsmith
