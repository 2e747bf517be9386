// Params: named, typed values in a fixed order. Requests and template parameters are both Params; a Schema
// says which names and values are allowed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <jitsmith/jit/element_type.hpp>

namespace jitsmith {

// A choice of an enum parameter is a string: its name.
using Value = std::variant<std::int64_t, bool, std::string, ElementType>;

// 4, true, name: the spelling that messages, tables, keys and the command line share.
std::string to_string(const Value& value);

class Params {
 public:
  using Item = std::pair<std::string, Value>;

  Params() = default;
  Params(std::initializer_list<Item> items);

  // Replaces the value of `name`, or appends it.
  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;

  // The typed value of `name`; throws InvalidRequest when it is missing or of another type.
  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& choice(std::string_view name) const;
  ElementType type(std::string_view name) const;

  const std::vector<Item>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  friend bool operator==(const Params&, const Params&) = default;

 private:
  std::vector<Item> items_;
};

// "threads=128,tile_n=4"
std::string to_string(const Params& params);

}  // namespace jitsmith
