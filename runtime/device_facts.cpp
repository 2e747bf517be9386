#include <jitsmith/runtime/device_facts.hpp>

#include <array>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

constexpr std::uint64_t k_mib = 1024 * 1024;
constexpr std::uint32_t k_kib = 1024;

DeviceFacts gpu(std::string name, std::string arch, std::uint32_t multiprocessors, std::uint64_t l2_mib,
                double data_sheet_gb_per_s, double clock_ghz, std::uint32_t shared_kib) {
  return {std::move(name),   {Executor::cuda, std::move(arch)}, multiprocessors,
          l2_mib * k_mib,    0.93 * data_sheet_gb_per_s,        clock_ghz,
          shared_kib * k_kib};
}

// sm_ and a number of two or three digits, with an a or f behind it or not.
bool names_architecture(std::string_view arch) {
  if (!arch.starts_with("sm_")) return false;
  arch.remove_prefix(3);
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  return (arch.size() == 2 || arch.size() == 3) &&
         arch.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool has_clusters(const DeviceFacts& device) {
  // "sm_80", "sm_90a", "sm_120a"
  const std::string& arch = device.target.arch;
  return device.target.executor == Executor::host || arch.size() > std::string_view("sm_90a").size() ||
         arch >= "sm_90";
}

std::span<const DeviceFacts> device_profiles() {
  // The first profile of an architecture stands for it.
  static const std::array profiles{
      gpu("h200", "sm_90a", 132, 60, 4800, 1.98, 227),
      gpu("h100", "sm_90a", 132, 50, 3350, 1.98, 227),
      gpu("b200", "sm_100a", 148, 126, 8000, 1.96, 227),
      gpu("b300", "sm_103a", 148, 126, 8000, 1.92, 227),
      gpu("a100", "sm_80", 108, 40, 2039, 1.41, 163),
      gpu("a10", "sm_86", 72, 6, 600, 1.70, 99),
      gpu("l40s", "sm_89", 142, 48, 864, 2.52, 99),
      gpu("rtx5090", "sm_120a", 170, 96, 1792, 2.41, 99),
      DeviceFacts{"host", host_target(), 1, 0, 10, 3, 227 * k_kib},
  };
  return profiles;
}

const DeviceFacts& device_profile(std::string_view name) {
  std::string names;
  for (const DeviceFacts& profile : device_profiles()) {
    if (profile.name == name) return profile;
    names += (names.empty() ? "" : ", ") + profile.name;
  }
  throw InvalidRequest(fmt::format("device '{}' is unknown; give one of {}", name, names));
}

DeviceFacts device_profile_for_arch(std::string_view arch) {
  for (const DeviceFacts& profile : device_profiles())
    if (profile.target.arch == arch) return profile;
  if (!names_architecture(arch))
    throw InvalidRequest(fmt::format("'{}' is no architecture; give one like sm_80, sm_90a or host", arch));
  DeviceFacts facts = device_profile("a100");
  facts.name = fmt::format("a100 as {}", arch);
  facts.target.arch = arch;
  return facts;
}

std::string arch_of_capability(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

}  // namespace jitsmith
