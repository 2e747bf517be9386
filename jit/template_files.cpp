#include <jitsmith/jit/template_files.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include <jitsmith/jit/embedded_templates.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {

TemplateFiles::TemplateFiles(std::string override_folder) : override_folder_(std::move(override_folder)) {}

std::optional<std::string> TemplateFiles::text(std::string_view path) const {
  if (!override_folder_.empty()) {
    const std::filesystem::path file = std::filesystem::path(override_folder_) / path;
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) {
      std::ifstream stream(file, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(stream), {}};
      if (!stream.good() && !stream.eof())
        throw InvalidRequest(fmt::format(
            "template file {} can't be read; make it readable or unset the template folder", file.string()));
      return text;
    }
  }
  for (const EmbeddedTemplate& embedded : embedded_templates())
    if (embedded.path == path) return std::string(embedded.text);
  return std::nullopt;
}

}  // namespace jitsmith
