// The calls by which AddressSanitizer and ThreadSanitizer follow switches between stacks; empty without them.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JITSMITH_ASAN_FIBERS
#endif
#if __has_feature(thread_sanitizer)
#define JITSMITH_TSAN_FIBERS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define JITSMITH_ASAN_FIBERS
#endif
#if defined(__SANITIZE_THREAD__)
#define JITSMITH_TSAN_FIBERS
#endif

#ifdef JITSMITH_ASAN_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef JITSMITH_TSAN_FIBERS
#include <sanitizer/tsan_interface.h>
#endif

namespace jitsmith::sanitizer {

// Before a switch to the stack at `bottom`. `fake_stack` keeps what belongs to the stack that is left; null
// when that one is left for good.
inline void start_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                         [[maybe_unused]] std::size_t bytes) {
#ifdef JITSMITH_ASAN_FIBERS
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}

// After a switch, on the new stack; tells which stack was left.
inline void finish_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** left_bottom,
                          [[maybe_unused]] std::size_t* left_bytes) {
#ifdef JITSMITH_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(fake_stack, left_bottom, left_bytes);
#endif
}

// Memory that becomes a stack may bear the marks of an earlier one.
inline void clear_marks([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t bytes) {
#ifdef JITSMITH_ASAN_FIBERS
  __asan_unpoison_memory_region(bottom, bytes);
#endif
}

inline void* create_thread() {
#ifdef JITSMITH_TSAN_FIBERS
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}
inline void destroy_thread([[maybe_unused]] void* thread) {
#ifdef JITSMITH_TSAN_FIBERS
  __tsan_destroy_fiber(thread);
#endif
}
inline void* current_thread() {
#ifdef JITSMITH_TSAN_FIBERS
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}
inline void switch_thread([[maybe_unused]] void* thread) {
#ifdef JITSMITH_TSAN_FIBERS
  __tsan_switch_to_fiber(thread, 0);
#endif
}

}  // namespace jitsmith::sanitizer
