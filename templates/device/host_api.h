// The C interface between a kernel compiled for the host target and the executor that runs it: shared by
// templates/device/host.cuh (inside the kernel's shared object) and runtime/host_executor.cpp.
//
// The executor runs every CUDA thread of a block as a fiber. Before it resumes a fiber it stores that fiber's
// JitsmithHostThread into the slot that the object exports, so reading threadIdx costs one load.
#pragma once

#define JITSMITH_HOST_API_VERSION 3

// Lanes of a warp, and bytes that a lane gives to an exchange at most.
#define JITSMITH_HOST_WARP_LANES 32
#define JITSMITH_HOST_LANE_BYTES 8

struct JitsmithHostThread {
  unsigned thread[3], block[3], block_dim[3], grid_dim[3];
  unsigned lane;  // 0..31 within its warp of 32 consecutive linear thread ids
  unsigned warp;  // linear thread id / 32
  unsigned cluster_rank;
  void* fiber;  // the executor's own
};

// Where a kernel calls the executor, for messages. Two barriers are the same barrier when their sites are
// equal.
struct JitsmithHostSite {
  const char* file;
  unsigned line;
};

// Each of these may throw through the kernel: the executor ends the threads of a failed block that way.
struct JitsmithHostApi {
  // Every thread of the block that has not exited must arrive, as with __syncthreads.
  void (*sync_block)(JitsmithHostThread*, JitsmithHostSite);

  // The lanes of `mask` exchange `size` (at most 8) bytes: each gives `mine`; afterwards `all` holds lane i's
  // bytes at all + 8 * i, and 0xFF bytes for the lanes outside the mask. All lanes of the mask must call it,
  // each with the same mask and size, itself included; lanes that the block does not have are left out. With
  // size 0 it is __syncwarp.
  void (*exchange_warp)(JitsmithHostThread*, unsigned mask, const void* mine, unsigned size, void* all,
                        JitsmithHostSite);

  // The block's one static shared region; the first caller of a block fixes the size. Poisoned at first.
  void* (*static_shared)(JitsmithHostThread*, unsigned long size, unsigned long align);

  // The dynamic shared region of the launch (its size is in the launch shape). Poisoned at first.
  void* (*dynamic_shared)(JitsmithHostThread*);

  // The two halves of the barrier of the block's cluster.
  void (*arrive_cluster)(JitsmithHostThread*, JitsmithHostSite);
  void (*wait_cluster)(JitsmithHostThread*, JitsmithHostSite);

  // Where block `rank` of the cluster has what the calling block has at `mine` in its shared memory.
  void* (*map_shared)(JitsmithHostThread*, void* mine, unsigned rank, JitsmithHostSite);

  // Noted of the block: one that is launched programmatically must call it.
  void (*wait_for_dependency)(JitsmithHostThread*);

  // Reports the kernel's own mistake, a phrase; does not return.
  void (*fail)(JitsmithHostThread*, const char* what, JitsmithHostSite);
};

// What a kernel's shared object exports, as `jitsmith_host_kernel`.
struct JitsmithHostKernel {
  unsigned api_version;
  const char* name;  // the instantiation, for messages
  unsigned param_count;
  const unsigned* param_bytes;
  void (*run_thread)(void* const* args);              // the kernel body for the current thread
  JitsmithHostThread** (*current)(void);              // this OS thread's slot
  void (*attach)(const struct JitsmithHostApi* api);  // called once after loading
};
