// The way down to a directory or file of the cache: one step after another, so that no symbolic link which
// another user planted among the parents is followed.
//
// Parents may belong to anybody and need be searchable only. Links of our own or of root are followed: a home
// or a cache folder on another disk is an ordinary set-up. The last part of a path is not opened here:
// whoever opens it follows no link at all.
#pragma once

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/private_file.hpp>

#include <string>
#include <string_view>

namespace jitsmith {

struct TrustedParent {
  Descriptor directory;  // opened with O_PATH
  std::string name;      // the last part of the path, below `directory`
  std::string problem;   // a predicate for "the cache directory X ..."; empty when all is well
  int error = 0;         // the errno behind the problem, if there is one
};

// `base` must exist and is trusted as a whole; what of the parents below it is missing is made when
// `if_missing` says so.
TrustedParent open_trusted_parent(FileSystem& file_system, const std::string& base, std::string_view below,
                                  IfMissing if_missing);

// Of what could not be opened: "cannot be opened (NAME: No such file or directory)".
std::string cannot_open(std::string_view name, int error, IfMissing if_missing);

}  // namespace jitsmith
