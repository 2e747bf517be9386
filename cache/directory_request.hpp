// Which directory the cache should use: a pure decision over a plain struct, and the one function that fills
// the struct from the process's surroundings. Never a shared place such as /tmp.
#pragma once

#include <optional>
#include <string>

namespace jitsmith {

// In order of preference. An empty string counts as not set.
struct DirectoryRequest {
  bool enabled = true;
  std::string disabled_reason;                 // one sentence, when not enabled
  std::optional<std::string> explicit_dir;     // set by the program
  std::optional<std::string> environment_dir;  // JITSMITH_CACHE_DIR
  std::optional<std::string> xdg_cache_home;   // ignored unless absolute, as its specification demands
  std::optional<std::string> home;             // likewise
  std::optional<std::string> passwd_home;      // likewise; for daemons that run without HOME
};

// Reads JITSMITH_CACHE (0 turns the disk cache off), JITSMITH_CACHE_DIR, XDG_CACHE_HOME and HOME. In a
// program with raised privileges nothing of this is believed and the cache is off. Call it once, early: it
// reads the environment.
DirectoryRequest directory_request_from_environment();

struct DirectoryChoice {
  std::string origin;  // for messages: "JITSMITH_CACHE_DIR"; empty when nothing was chosen
  std::string base;    // must exist: a missing home directory is not ours to create
  std::string below;   // created under it; never absolute
  std::string remedy;  // what the user can do when the place turns out to be no good
  std::string reason;  // one sentence, when nothing was chosen

  std::string path() const { return base.ends_with('/') ? base + below : base + '/' + below; }
};

// A directory that was named by the program or by JITSMITH_CACHE_DIR is used or refused, never replaced by
// another.
DirectoryChoice choose_directory(const DirectoryRequest& request);

}  // namespace jitsmith
