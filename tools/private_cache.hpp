// The cache of a warm for a bundle alone, in a directory that goes with the run.
#pragma once

#include <string>

#include <jitsmith/runtime/options.hpp>

namespace jitsmith {

// In the cold mode the directory is the only tier, for nothing may come from or go to the others.
inline void use_private_cache(Options& options, const std::string& directory) {
  if (options.cold) {
    options.bundles.clear();
    options.remote = {};
  }
  options.cold = false;
  options.cache = {.explicit_dir = directory};
}

}  // namespace jitsmith
