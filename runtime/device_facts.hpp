// DeviceFacts: what selection knows of a device, as plain data: read from the GPU, or from a named profile
// without one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <jitsmith/jit/target.hpp>

namespace jitsmith {

struct DeviceFacts {
  std::string name;  // for people only; tables never match on it
  Target target;
  std::uint32_t multiprocessors = 1;
  std::uint64_t l2_bytes = 0;
  double memory_gb_per_s = 1;                // achievable read rate of device memory, 1e9 bytes per second
  double clock_ghz = 1;                      // of the multiprocessors, under load
  std::uint32_t shared_bytes_per_block = 0;  // the most one block may ask for
};

// Whether blocks can form clusters there, with bulk copies and programmatic dependent launch: sm_90 and
// later, and the host target.
bool has_clusters(const DeviceFacts& device);

// h200, h100, b200, b300, a100, a10, l40s, rtx5090: data sheet figures, memory rate at 93 % of the data sheet
// (what a 1 GiB read reaches on an H200). And "host": the host target.
std::span<const DeviceFacts> device_profiles();

// The profile called `name`; throws InvalidRequest that lists the names.
const DeviceFacts& device_profile(std::string_view name);

// The facts that stand for an architecture ("sm_90a", "host") when only that is known: the first profile that
// has it, or those of an a100 under that name for an architecture without a profile. Throws InvalidRequest
// for a text that names no architecture.
DeviceFacts device_profile_for_arch(std::string_view arch);

// "sm_90a" for compute capability 9.0: the architecture-specific target where there is one (9.0 and later).
std::string arch_of_capability(int major, int minor);

}  // namespace jitsmith
