// The host side of the device headers: how a kernel finds its thread and reaches the executor, and how its
// shared object exports it. Uses no standard header, so that a kernel compiles in a fraction of a second.
#pragma once

#include "device/host_api.h"

namespace jitsmith::host {

inline const JitsmithHostApi* api = nullptr;
inline constinit thread_local JitsmithHostThread* current_slot = nullptr;

// The CUDA thread that runs now. A kernel body sees one and the same throughout, hence `const`.
[[gnu::const, gnu::noinline]] inline JitsmithHostThread* current() {
  return current_slot;
}

using Site = JitsmithHostSite;

// As a default argument: the place of the call.
constexpr Site here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {file, line};
}

inline void check_aligned_16(const void* address, Site site) {
  if (reinterpret_cast<unsigned long>(address) % 16 != 0)
    api->fail(current(), "accesses 16 bytes at an address that is not a multiple of 16", site);
}

// 0, 1, ..., N-1 as a type: std::index_sequence without its header.
template <unsigned... I>
struct IndexList {};
template <unsigned N, unsigned... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct MakeIndices<0, I...> {
  using type = IndexList<I...>;
};

// The sizes of a kernel's parameters. One more element than parameters, so that it is never empty.
template <unsigned Count>
struct ParamBytes {
  unsigned bytes[Count + 1];
};

// The kernel's signature, taken apart: its parameters, and a call with arguments behind pointers.
template <auto Kernel>
struct Entry;

template <class... Params, void (*Kernel)(Params...)>
struct Entry<Kernel> {
  static constexpr unsigned k_count = sizeof...(Params);
  static constexpr ParamBytes<k_count> k_param_bytes{{sizeof(Params)..., 0}};

  static void run_thread(void* const* args) { run(args, typename MakeIndices<k_count>::type{}); }

 private:
  template <unsigned... I>
  static void run([[maybe_unused]] void* const* args, IndexList<I...>) {
    Kernel(*static_cast<Params*>(args[I])...);
  }
};

inline JitsmithHostThread** slot() {
  return &current_slot;
}
inline void attach(const JitsmithHostApi* executor) {
  api = executor;
}

}  // namespace jitsmith::host

// Exports one instantiation; the host compiler appends this line to what it compiles. The parameter sizes lie
// in a section of their own, where the compiler's caller reads them without loading the object.
#define JITSMITH_HOST_EXPORT(...)                                                                         \
  __attribute__((section("jitsmith_params"), used)) constexpr auto jitsmith_param_bytes =                 \
      jitsmith::host::Entry<&__VA_ARGS__>::k_param_bytes;                                                 \
  extern "C" __attribute__((visibility("default"))) constexpr JitsmithHostKernel jitsmith_host_kernel = { \
      JITSMITH_HOST_API_VERSION,                                                                          \
      #__VA_ARGS__,                                                                                       \
      jitsmith::host::Entry<&__VA_ARGS__>::k_count,                                                       \
      jitsmith_param_bytes.bytes,                                                                         \
      &jitsmith::host::Entry<&__VA_ARGS__>::run_thread,                                                   \
      &jitsmith::host::slot,                                                                              \
      &jitsmith::host::attach};
