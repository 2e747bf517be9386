// Reads the text of a key (jit/key.hpp) back into its fields, and says in which of them two keys differ.
// Pure; trusts nothing: the text may come from a damaged or foreign entry.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

// Both are views into the text of the key.
struct KeyField {
  std::string_view name, value;

  friend bool operator==(const KeyField&, const KeyField&) = default;
};

using KeyFields = std::vector<KeyField>;  // in the order of the text

// What can be read of `text`: all of a key's fields, and those before the first fault of any other text. A
// value may have any bytes.
KeyFields key_fields(std::string_view text);

// The value of the first field of that name.
std::optional<std::string_view> find_field(const KeyFields& fields, std::string_view name);

// A field that one of two keys has and the other has not, or has with another value.
struct FieldDifference {
  std::string_view name;
  std::optional<std::string_view> wanted, had;  // nothing where the field is absent
};

// In the order of `wanted`, then what only `had` has. Only the toolchain of a key whose compiler is not known
// (an empty value) is no difference to any other.
std::vector<FieldDifference> differences(const KeyFields& wanted, const KeyFields& had);

// "parameter.threads (128, not 64)"; for digests and identities, whose values tell people nothing, the name
// alone.
std::string to_string(const FieldDifference& difference);

// "128" for "int 128": the value of a parameter's field as people write it.
std::string_view without_kind(std::string_view parameter_value);

}  // namespace jitsmith
