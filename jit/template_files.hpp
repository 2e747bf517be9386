// The device headers and kernel sources that ship inside the library, by virtual path. A folder given by the
// caller overrides them file by file, so that a kernel author can edit a template without rebuilding the
// library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

class TemplateFiles {
 public:
  // `override_folder`: empty for the embedded files alone. It is read at each text() call.
  explicit TemplateFiles(std::string override_folder = {});

  // The text of "device/prelude.cuh", "skinny_gemm/simt.cu", ...; nullopt when there is no such file.
  // Throws InvalidRequest when the override folder holds the file but it can't be read.
  std::optional<std::string> text(std::string_view path) const;

  // Whether texts may change while the program runs.
  bool overridden() const { return !override_folder_.empty(); }

 private:
  std::string override_folder_;
};

}  // namespace jitsmith
