// How a kernel is launched: extents in threads and blocks, shared memory in bytes.
#pragma once

#include <array>
#include <cstdint>

namespace jitsmith {

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   // blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  // threads
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t cluster = 1;  // blocks of a cluster, adjacent in x; divides grid x
  bool programmatic = false;  // may begin before the kernel in front of it in the stream has ended

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

}  // namespace jitsmith
