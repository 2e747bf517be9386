// Programmatic dependent launch: a kernel that begins before the one in front of it in the stream has ended.
// Without effect before sm_90, on the host target, and for launches that did not ask for it.
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

// Lets the kernel behind begin, once every block of this one has called it or exited.
JITSMITH_DEVICE void launch_dependents() {
#if !JITSMITH_HOST && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel in front has ended and its writes are seen. Every block calls it before it reads
// what that kernel may write, and before it writes anything.
JITSMITH_DEVICE void wait_for_dependency() {
#if JITSMITH_HOST
  host::api->wait_for_dependency(host::current());
#elif __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace jitsmith
