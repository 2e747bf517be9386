// Replaces operator new in the whole test program; the array forms call these.
#include "support/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t t_allocations = 0;

}  // namespace

std::size_t jitsmith::test::allocations_of_this_thread() {
  return t_allocations;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++t_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* operator new(std::size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
