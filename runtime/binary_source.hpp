// Where a plan's code came from.
#pragma once

#include <string_view>

namespace jitsmith {

enum class BinarySource {
  none,    // nothing to run
  memory,  // loaded before
  disk,    // the cache directory
  bundle,
  remote,
  compiled,
};

std::string_view to_string(BinarySource source);

}  // namespace jitsmith
