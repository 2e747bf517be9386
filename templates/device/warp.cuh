// Barriers of a block, and what the lanes of a warp do together: shuffles and votes.
//
// A warp operation names its lanes by `mask`: every lane of it calls the operation with that mask, and a lane
// reads only from lanes of the mask. On the host target, reading from another lane gives 0xFF bytes, and a
// lane that never comes is an error. Values are 4 or 8 bytes, trivially copyable.
#pragma once

#include "device/bits.cuh"

namespace jitsmith {

inline constexpr uint32 k_all_lanes = 0xffffffffu;

// The unsigned integer of a shuffled type's size.
template <unsigned Bytes>
struct LaneWord {
  static_assert(Bytes == 4 || Bytes == 8, "a shuffled value has 4 or 8 bytes");
};
template <>
struct LaneWord<4> {
  using type = uint32;
};
template <>
struct LaneWord<8> {
  using type = uint64;
};
template <class T>
using lane_word = typename LaneWord<sizeof(T)>::type;

#if !JITSMITH_HOST

// Every thread of the block that has not exited arrives before any goes on.
JITSMITH_DEVICE void sync_block() {
  __syncthreads();
}

JITSMITH_DEVICE void sync_warp(uint32 mask = k_all_lanes) {
  __syncwarp(mask);
}

// The value of lane `source` (modulo 32).
template <class T>
JITSMITH_DEVICE T shuffle(T value, uint32 source, uint32 mask = k_all_lanes) {
  return bit_cast<T>(__shfl_sync(mask, bit_cast<lane_word<T>>(value), static_cast<int>(source)));
}

// The value of the lane whose index differs in the bits of `bits`.
template <class T>
JITSMITH_DEVICE T shuffle_xor(T value, uint32 bits, uint32 mask = k_all_lanes) {
  return bit_cast<T>(__shfl_xor_sync(mask, bit_cast<lane_word<T>>(value), static_cast<int>(bits)));
}

// The value of the lane `delta` (below 32) further up; the top lanes keep their own.
template <class T>
JITSMITH_DEVICE T shuffle_down(T value, uint32 delta, uint32 mask = k_all_lanes) {
  return bit_cast<T>(__shfl_down_sync(mask, bit_cast<lane_word<T>>(value), delta));
}

// The value of the lane `delta` (below 32) further down; the bottom lanes keep their own.
template <class T>
JITSMITH_DEVICE T shuffle_up(T value, uint32 delta, uint32 mask = k_all_lanes) {
  return bit_cast<T>(__shfl_up_sync(mask, bit_cast<lane_word<T>>(value), delta));
}

// Bit i is the predicate of lane i; 0 for lanes outside the mask.
JITSMITH_DEVICE uint32 ballot(bool predicate, uint32 mask = k_all_lanes) {
  return __ballot_sync(mask, predicate);
}

JITSMITH_DEVICE bool vote_any(bool predicate, uint32 mask = k_all_lanes) {
  return __any_sync(mask, predicate) != 0;
}
JITSMITH_DEVICE bool vote_all(bool predicate, uint32 mask = k_all_lanes) {
  return __all_sync(mask, predicate) != 0;
}

#else

namespace host {

// What all lanes of a warp gave to one exchange.
template <class T>
struct Lanes {
  struct alignas(JITSMITH_HOST_LANE_BYTES) Cell {
    T value;
  };
  Cell cell[JITSMITH_HOST_WARP_LANES];

  Lanes(T mine, uint32 mask, Site site) {
    static_assert(sizeof(lane_word<T>) == sizeof(T) && __is_trivially_copyable(T));
    api->exchange_warp(current(), mask, &mine, sizeof(T), cell, site);
  }
  T operator[](uint32 lane) const { return cell[lane % JITSMITH_HOST_WARP_LANES].value; }
};

}  // namespace host

JITSMITH_DEVICE void sync_block(host::Site site = host::here()) {
  host::api->sync_block(host::current(), site);
}

JITSMITH_DEVICE void sync_warp(uint32 mask = k_all_lanes, host::Site site = host::here()) {
  host::api->exchange_warp(host::current(), mask, nullptr, 0, nullptr, site);
}

template <class T>
JITSMITH_DEVICE T shuffle(T value, uint32 source, uint32 mask = k_all_lanes, host::Site site = host::here()) {
  return host::Lanes<T>(value, mask, site)[source];
}

template <class T>
JITSMITH_DEVICE T shuffle_xor(T value, uint32 bits, uint32 mask = k_all_lanes,
                              host::Site site = host::here()) {
  return host::Lanes<T>(value, mask, site)[host::current()->lane ^ bits];
}

template <class T>
JITSMITH_DEVICE T shuffle_down(T value, uint32 delta, uint32 mask = k_all_lanes,
                               host::Site site = host::here()) {
  const host::Lanes<T> lanes(value, mask, site);
  const uint32 source = host::current()->lane + delta % 32;
  return source < 32 ? lanes[source] : value;
}

template <class T>
JITSMITH_DEVICE T shuffle_up(T value, uint32 delta, uint32 mask = k_all_lanes,
                             host::Site site = host::here()) {
  const host::Lanes<T> lanes(value, mask, site);
  const uint32 lane = host::current()->lane;
  return lane >= delta % 32 ? lanes[lane - delta % 32] : value;
}

JITSMITH_DEVICE uint32 ballot(bool predicate, uint32 mask = k_all_lanes, host::Site site = host::here()) {
  const host::Lanes<uint32> lanes(predicate, mask, site);
  uint32 bits = 0;
  for (uint32 lane = 0; lane < JITSMITH_HOST_WARP_LANES; ++lane)
    bits |= (lanes[lane] == 1u ? 1u : 0u) << lane;
  return bits;
}

JITSMITH_DEVICE bool vote_any(bool predicate, uint32 mask = k_all_lanes, host::Site site = host::here()) {
  return ballot(predicate, mask, site) != 0;
}
JITSMITH_DEVICE bool vote_all(bool predicate, uint32 mask = k_all_lanes, host::Site site = host::here()) {
  return ballot(!predicate, mask, site) == 0;
}

#endif

}  // namespace jitsmith
