#include <jitsmith/jit/specialize.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/include_scan.hpp>
#include <jitsmith/jit/virtual_path.hpp>

namespace jitsmith {

std::vector<SourceFile> include_closure(const KernelTemplate& kernel, const TemplateFiles& files) {
  const auto header_text = [&](const std::string& path, const std::string& from) -> SourceText {
    for (const SourceFile& header : kernel.headers)
      if (header.path == path) return header.text;
    if (auto text = files.text(path)) return *std::move(text);
    throw CompileError(
        fmt::format("{} includes \"{}\", which is neither a header of the template nor a built-in one; "
                    "add it to the template's headers",
                    from, path),
        {});
  };

  std::map<std::string, SourceText> closure;  // sorted by path
  std::vector<SourceFile> unread{{kernel.path, kernel.source}};
  while (!unread.empty()) {
    const SourceFile file = std::move(unread.back());
    unread.pop_back();
    for (const std::string& path : included_paths(file))
      if (!closure.contains(path)) {
        unread.push_back({path, closure.emplace(path, header_text(path, file.path)).first->second});
      }
  }

  std::vector<SourceFile> headers;
  for (auto& [path, text] : closure) headers.push_back({path, text});
  return headers;
}

SpecializedSource specialize(const KernelTemplate& kernel, const Params& params,
                             std::vector<SourceFile> headers) {
  check_virtual_path(kernel.path);
  SpecializedSource source{
      .main = {kernel.path, kernel.source}, .headers = std::move(headers), .instantiation = kernel.function};
  if (!kernel.schema.params().empty())
    source.instantiation += "<" + kernel.schema.template_arguments(params) + ">";
  return source;
}

}  // namespace jitsmith
