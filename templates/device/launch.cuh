// Where a thread is: its index in the block, its block's index in the grid, and the extents of both.
#pragma once

#include "device/prelude.cuh"

namespace jitsmith {

#if !JITSMITH_HOST

JITSMITH_DEVICE uint32 thread_index_x() {
  return threadIdx.x;
}
JITSMITH_DEVICE uint32 thread_index_y() {
  return threadIdx.y;
}
JITSMITH_DEVICE uint32 thread_index_z() {
  return threadIdx.z;
}
JITSMITH_DEVICE uint32 block_index_x() {
  return blockIdx.x;
}
JITSMITH_DEVICE uint32 block_index_y() {
  return blockIdx.y;
}
JITSMITH_DEVICE uint32 block_index_z() {
  return blockIdx.z;
}
JITSMITH_DEVICE uint32 block_extent_x() {
  return blockDim.x;
}
JITSMITH_DEVICE uint32 block_extent_y() {
  return blockDim.y;
}
JITSMITH_DEVICE uint32 block_extent_z() {
  return blockDim.z;
}
JITSMITH_DEVICE uint32 grid_extent_x() {
  return gridDim.x;
}
JITSMITH_DEVICE uint32 grid_extent_y() {
  return gridDim.y;
}
JITSMITH_DEVICE uint32 grid_extent_z() {
  return gridDim.z;
}

// The thread's place in its warp, 0..31.
JITSMITH_DEVICE uint32 lane_index() {
  uint32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// The warp's place in its block: 32 consecutive linear thread ids are a warp.
JITSMITH_DEVICE uint32 warp_index() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

#else

JITSMITH_DEVICE uint32 thread_index_x() {
  return host::current()->thread[0];
}
JITSMITH_DEVICE uint32 thread_index_y() {
  return host::current()->thread[1];
}
JITSMITH_DEVICE uint32 thread_index_z() {
  return host::current()->thread[2];
}
JITSMITH_DEVICE uint32 block_index_x() {
  return host::current()->block[0];
}
JITSMITH_DEVICE uint32 block_index_y() {
  return host::current()->block[1];
}
JITSMITH_DEVICE uint32 block_index_z() {
  return host::current()->block[2];
}
JITSMITH_DEVICE uint32 block_extent_x() {
  return host::current()->block_dim[0];
}
JITSMITH_DEVICE uint32 block_extent_y() {
  return host::current()->block_dim[1];
}
JITSMITH_DEVICE uint32 block_extent_z() {
  return host::current()->block_dim[2];
}
JITSMITH_DEVICE uint32 grid_extent_x() {
  return host::current()->grid_dim[0];
}
JITSMITH_DEVICE uint32 grid_extent_y() {
  return host::current()->grid_dim[1];
}
JITSMITH_DEVICE uint32 grid_extent_z() {
  return host::current()->grid_dim[2];
}
JITSMITH_DEVICE uint32 lane_index() {
  return host::current()->lane;
}
JITSMITH_DEVICE uint32 warp_index() {
  return host::current()->warp;
}

#endif

}  // namespace jitsmith
