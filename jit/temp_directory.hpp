// A fresh directory that only this user can enter (mode 0700), removed with all it holds when the object
// goes. What fails here may work next time, when the folder exists or the disk has room again.
//
// A process that is killed leaves its directory behind. Each is locked as long as its maker lives, so that
// the next one that is made beside it can tell, and removes it: not by process ids, which are reused, and
// mean nothing between containers that share a folder.
#pragma once

#include <string>
#include <string_view>

#include <jitsmith/cache/descriptor.hpp>

namespace jitsmith {

class TempDirectory {
 public:
  // Makes it inside `parent`, after removing what dead processes of this user have left there for an hour: a
  // bounded number of leftovers, among the first few thousand names. Throws TransientCompileError when it
  // can't be made.
  explicit TempDirectory(const std::string& parent);
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

  // `relative` must stay inside; folders on the way are made. Throws TransientCompileError when that fails.
  void write(const std::string& relative, std::string_view text) const;

 private:
  std::string path_;
  Descriptor lock_;
};

// The folder that people know `path` by, in which one temporary directory may lie in another: what TMPDIR
// names.
std::string folder_of_temporaries(const std::string& path);

}  // namespace jitsmith
