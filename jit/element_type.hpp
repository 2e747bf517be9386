// Element types of tensors: the names that requests, tables, keys and NumPy files use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace jitsmith {

enum class ElementType : std::uint8_t { bf16, f32, u8, i32, i64 };

// "bf16", "f32", ...: the spelling in requests and keys.
std::string_view name_of(ElementType type);

// The C++ type of device code: "jitsmith::bf16", "float", ...
std::string_view device_name_of(ElementType type);

std::size_t size_of(ElementType type);

std::optional<ElementType> element_type_from(std::string_view name);

}  // namespace jitsmith
