#include <jitsmith/jit/binary.hpp>

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace jitsmith {
namespace {

bool parse(std::string_view text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse_list(std::string_view text, std::vector<std::uint32_t>& values) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (!parse(text.substr(0, comma), values.emplace_back()) || comma + 1 == text.size()) return false;
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return true;
}

}  // namespace

std::string to_text(const KernelFacts& facts) {
  return fmt::format(
      "lowered_name={}\nregisters={}\nstatic_shared_bytes={}\nlocal_bytes={}\nspill_store_bytes={}\nspill_"
      "load_bytes={}\n"
      "param_bytes={}\n",
      facts.lowered_name, facts.registers, facts.static_shared_bytes, facts.local_bytes,
      facts.spill_store_bytes, facts.spill_load_bytes, fmt::join(facts.param_bytes, ","));
}

std::optional<KernelFacts> facts_from_text(std::string_view text) {
  KernelFacts facts;
  // The order is fixed, so the text is a canonical form: equal facts, equal bytes.
  const auto value_of = [&text](std::string_view name) -> std::optional<std::string_view> {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || !text.starts_with(name) || text.substr(name.size(), 1) != "=")
      return std::nullopt;
    const std::string_view value = text.substr(name.size() + 1, end - name.size() - 1);
    text.remove_prefix(end + 1);
    return value;
  };
  const auto number = [&](std::string_view name, std::uint32_t& field) {
    const auto value = value_of(name);
    return value && parse(*value, field);
  };
  const auto lowered_name = value_of("lowered_name");
  if (!lowered_name) return std::nullopt;
  facts.lowered_name = *lowered_name;
  if (!number("registers", facts.registers) || !number("static_shared_bytes", facts.static_shared_bytes) ||
      !number("local_bytes", facts.local_bytes) || !number("spill_store_bytes", facts.spill_store_bytes) ||
      !number("spill_load_bytes", facts.spill_load_bytes))
    return std::nullopt;
  const auto sizes = value_of("param_bytes");
  if (!sizes || !parse_list(*sizes, facts.param_bytes) || !text.empty()) return std::nullopt;
  return facts;
}

}  // namespace jitsmith
