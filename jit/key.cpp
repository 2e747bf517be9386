#include <jitsmith/jit/key.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/key_fields.hpp>

namespace jitsmith {
namespace {

std::string_view kind_name(const Value& value) {
  constexpr std::string_view names[] = {"int", "bool", "choice", "type"};
  return names[value.index()];
}

void append_field(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append("[").append(fmt::format_int(value.size()).c_str()).append("]=").append(value) +=
      '\n';
}

constexpr std::string_view k_toolchain = "toolchain";

}  // namespace

Key make_key(const KernelTemplate& kernel, const Params& params, const SpecializedSource& source,
             const Target& target, const std::string& toolchain, const std::vector<std::string>& options) {
  std::string text;
  text.reserve(4096);
  const auto field = [&text](std::string_view name, std::string_view value) {
    append_field(text, name, value);
  };
  const auto content = [&field](std::string_view name, const SourceText& file) {
    field(name, fmt::format("{} {} bytes", file.digest().hex(), file.str().size()));
  };

  field("format", std::to_string(k_key_format));
  field("template", kernel.path);
  field("function", kernel.function);
  for (const auto& [name, value] : params.items())
    field("parameter." + name, fmt::format("{} {}", kind_name(value), to_string(value)));
  content("source", source.main.text);
  for (const SourceFile& header : source.headers) content("header." + header.path, header.text);
  field("instantiation", source.instantiation);
  field("target", fmt::format("{} {}", target.executor == Executor::cuda ? "cuda" : "host", target.arch));
  for (std::size_t i = 0; i < options.size(); ++i) field(fmt::format("option.{}", i), options[i]);
  field(k_toolchain, toolchain);
  const Digest digest = digest_of(text);
  return {std::move(text), digest};
}

Key with_toolchain(const Key& key, std::string_view toolchain) {
  // The last field: all before it stays. Found by reading the fields, for a value may have any bytes.
  const KeyFields fields = key_fields(key.text);
  const std::size_t kept = static_cast<std::size_t>(fields.back().name.data() - key.text.data());
  std::string text = key.text.substr(0, kept);
  append_field(text, k_toolchain, toolchain);
  const Digest digest = digest_of(text);
  return {std::move(text), digest};
}

}  // namespace jitsmith
