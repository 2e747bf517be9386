#include <jitsmith/jit/specialize.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

// The paths of all #include "x" lines. Preprocessor conditions are not evaluated: a header behind an #if may
// be read in vain, but none is ever missed, and the key covers whatever could be included.
std::vector<std::string> quoted_includes(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto skip_blanks = [&line] {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    };
    skip_blanks();
    if (!line.starts_with('#')) continue;
    line.remove_prefix(1);
    skip_blanks();
    if (!line.starts_with("include")) continue;
    line.remove_prefix(7);
    skip_blanks();
    if (!line.starts_with('"')) continue;
    line.remove_prefix(1);
    if (const std::size_t close = line.find('"'); close != std::string_view::npos)
      paths.emplace_back(line.substr(0, close));
  }
  return paths;
}

}  // namespace

SpecializedSource specialize(const KernelTemplate& kernel, const Params& params, const TemplateFiles& files) {
  const auto header_text = [&](const std::string& path, const std::string& from) -> std::string {
    for (const SourceFile& header : kernel.headers)
      if (header.path == path) return header.text;
    if (auto text = files.text(path)) return *std::move(text);
    throw CompileError(
        fmt::format("{} includes \"{}\", which is neither a header of the template nor a built-in one; "
                    "add it to the template's headers",
                    from, path),
        {});
  };

  std::map<std::string, std::string> closure;  // sorted by path
  std::vector<SourceFile> unread{{kernel.path, kernel.source}};
  while (!unread.empty()) {
    const SourceFile file = std::move(unread.back());
    unread.pop_back();
    for (const std::string& path : quoted_includes(file.text))
      if (!closure.contains(path)) {
        const std::string& text = closure[path] = header_text(path, file.path);
        unread.push_back({path, text});
      }
  }

  SpecializedSource source{
      .main = {kernel.path, kernel.source}, .headers = {}, .instantiation = kernel.function};
  for (auto& [path, text] : closure) source.headers.push_back({path, std::move(text)});
  if (!kernel.schema.params().empty())
    source.instantiation += "<" + kernel.schema.template_arguments(params) + ">";
  return source;
}

}  // namespace jitsmith
