#include <jitsmith/runtime/arrays.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace jitsmith {

Array Array::zeros(ElementType type, std::vector<std::int64_t> shape) {
  Array array{type, std::move(shape), {}};
  array.bytes.resize(static_cast<std::size_t>(array.count()) * size_of(type));
  return array;
}

std::int64_t Array::count() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::string Array::describe() const {
  return fmt::format("{} [{}]", name_of(type), fmt::join(shape, ", "));
}

}  // namespace jitsmith
