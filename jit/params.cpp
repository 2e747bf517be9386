#include <jitsmith/jit/params.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

template <class T>
const T& get(const Params& params, std::string_view name, std::string_view kind) {
  const Value* value = params.find(name);
  if (value == nullptr)
    throw InvalidRequest(
        fmt::format("parameter '{}' is missing from ({}); give it a value", name, to_string(params)));
  if (const T* typed = std::get_if<T>(value)) return *typed;
  throw InvalidRequest(
      fmt::format("parameter '{}' is {}, which is not {}; give it one", name, to_string(*value), kind));
}

}  // namespace

std::string to_string(const Value& value) {
  struct Visitor {
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(ElementType v) const { return std::string(name_of(v)); }
  };
  return std::visit(Visitor{}, value);
}

Params::Params(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

void Params::set(std::string_view name, Value value) {
  for (Item& item : items_)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items_.emplace_back(std::string(name), std::move(value));
}

const Value* Params::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

std::int64_t Params::integer(std::string_view name) const {
  return get<std::int64_t>(*this, name, "an integer");
}
bool Params::flag(std::string_view name) const {
  return get<bool>(*this, name, "true or false");
}
const std::string& Params::choice(std::string_view name) const {
  return get<std::string>(*this, name, "a choice");
}
ElementType Params::type(std::string_view name) const {
  return get<ElementType>(*this, name, "an element type");
}

std::string to_string(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, to_string(value));
  return text;
}

}  // namespace jitsmith
