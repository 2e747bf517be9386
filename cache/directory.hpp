// Opens the cache directory: finds it, creates what is missing, and vets it. The outcome is a value, never an
// exception; when the directory cannot be used, the value says why and what to do about it.
//
// All later work goes through the descriptors returned here, so that a path which is swapped for another one
// afterwards does not matter.
#pragma once

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/directory_request.hpp>
#include <jitsmith/cache/private_file.hpp>

#include <string>
#include <string_view>

namespace jitsmith {

enum class DirectoryStatus {
  usable,
  read_only,  // entries are served, nothing is stored
  off,        // nothing is read or stored: kernels live in memory only
};

std::string_view to_string(DirectoryStatus status);

struct DirectoryState {
  DirectoryStatus status = DirectoryStatus::off;
  std::string path;    // empty when no directory was chosen
  std::string reason;  // one sentence, unless usable
};

struct Directory {
  DirectoryState state;
  Descriptor entries;       // the folder of the present format, `v1`; not open when off
  bool is_missing = false;  // off, because it is not there and was not to be made
};

// With IfMissing::fail it creates nothing at all, nor CACHEDIR.TAG.
Directory open_directory(FileSystem& file_system, const DirectoryRequest& request,
                         IfMissing if_missing = IfMissing::create);

}  // namespace jitsmith
