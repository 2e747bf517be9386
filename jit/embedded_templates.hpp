// The text of every file under templates/, compiled into the library: a program needs no data files beside
// it. The source of this is generated at build time by cmake/EmbedTemplates.cmake.
#pragma once

#include <span>
#include <string_view>

namespace jitsmith {

struct EmbeddedTemplate {
  std::string_view path;  // relative to templates/: "device/host_api.h"
  std::string_view text;
};

// In the order of the list in templates/CMakeLists.txt. The views live as long as the program.
std::span<const EmbeddedTemplate> embedded_templates();

}  // namespace jitsmith
