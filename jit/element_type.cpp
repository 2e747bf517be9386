#include <jitsmith/jit/element_type.hpp>

#include <array>

namespace jitsmith {
namespace {

struct Row {
  ElementType type;
  std::string_view name, device_name;
  std::size_t size_bytes;
};

constexpr std::array k_rows{
    Row{ElementType::bf16, "bf16", "jitsmith::bf16", 2}, Row{ElementType::f32, "f32", "float", 4},
    Row{ElementType::u8, "u8", "jitsmith::uint8", 1},    Row{ElementType::i32, "i32", "jitsmith::int32", 4},
    Row{ElementType::i64, "i64", "jitsmith::int64", 8},
};

const Row& row_of(ElementType type) {
  return k_rows[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view name_of(ElementType type) {
  return row_of(type).name;
}
std::string_view device_name_of(ElementType type) {
  return row_of(type).device_name;
}
std::size_t size_of(ElementType type) {
  return row_of(type).size_bytes;
}

std::optional<ElementType> element_type_from(std::string_view name) {
  for (const Row& row : k_rows)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace jitsmith
