// The bundle that `jitsmith warm --into` makes of a warmed cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/specialisation.hpp>

namespace jitsmith {

struct WrittenBundle {
  std::uint64_t entries = 0, bytes = 0;
};

// Replaces `file` by a bundle of these kernels, all of which the cache must have. Throws std::runtime_error;
// then the file is as it was.
WrittenBundle write_bundle(Engine& engine, const std::vector<Specialisation>& items, const std::string& file);

}  // namespace jitsmith
