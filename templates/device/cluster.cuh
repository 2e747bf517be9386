// The blocks of a cluster: they run at the same time and reach each other's shared memory. sm_90 and later.
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

#if !JITSMITH_HOST

// The block's place in its cluster.
JITSMITH_DEVICE uint32 cluster_rank() {
  uint32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster in two halves: what a thread wrote before it arrived is seen by
// those that have waited. Every thread arrives, then waits, in turn.
JITSMITH_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
JITSMITH_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Where block `rank` has what the calling block has at `mine` in its shared memory. That block must have
// begun (a cluster barrier says so) and must not end before the access (another one does).
template <class T>
JITSMITH_DEVICE T* map_shared_rank(T* mine, uint32 rank) {
  uint64 theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
  return reinterpret_cast<T*>(theirs);
}

#else

JITSMITH_DEVICE uint32 cluster_rank() {
  return host::current()->cluster_rank;
}
JITSMITH_DEVICE void cluster_arrive(host::Site site = host::here()) {
  host::api->arrive_cluster(host::current(), site);
}
JITSMITH_DEVICE void cluster_wait(host::Site site = host::here()) {
  host::api->wait_cluster(host::current(), site);
}
template <class T>
JITSMITH_DEVICE T* map_shared_rank(T* mine, uint32 rank, host::Site site = host::here()) {
  return static_cast<T*>(host::api->map_shared(host::current(), mine, rank, site));
}

#endif

}  // namespace jitsmith
