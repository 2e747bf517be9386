// A fresh directory that only this user can enter (mode 0700), removed with all it holds when the object
// goes. What fails here may work next time, when the folder exists or the disk has room again.
#pragma once

#include <string>
#include <string_view>

namespace jitsmith {

class TempDirectory {
 public:
  // Makes it inside `parent`. Throws TransientCompileError when that fails.
  explicit TempDirectory(const std::string& parent);
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

  // `relative` must stay inside; folders on the way are made. Throws TransientCompileError when that fails.
  void write(const std::string& relative, std::string_view text) const;

 private:
  std::string path_;
};

}  // namespace jitsmith
