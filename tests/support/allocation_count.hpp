// How often the calling thread has called operator new since it started.
#pragma once

#include <cstddef>

namespace jitsmith::test {

std::size_t allocations_of_this_thread();

}  // namespace jitsmith::test
