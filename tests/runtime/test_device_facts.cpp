#include <jitsmith/runtime/device_facts.hpp>

#include <set>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::contains;
using test::message_of;

}  // namespace

TEST_SUITE_BEGIN("DeviceFacts");

TEST_CASE("Each profile is found by its name, and names are unique") {
  std::set<std::string> names;
  for (const DeviceFacts& profile : device_profiles()) {
    CHECK(&device_profile(profile.name) == &profile);
    CHECK(names.insert(profile.name).second);
    CHECK(profile.multiprocessors > 0);
    CHECK(profile.memory_gb_per_s > 0);
    CHECK(profile.clock_ghz > 0);
    CHECK(profile.shared_bytes_per_block >= 48 * 1024);
    CHECK((profile.target.executor == Executor::host) == (profile.name == "host"));
  }
}

TEST_CASE("Every supported architecture has a profile of its own") {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "host"}) {
    CAPTURE(arch);
    const DeviceFacts facts = device_profile_for_arch(arch);
    CHECK(facts.target.arch == arch);
    CHECK(device_profile(facts.name).target.arch == arch);
  }
}

TEST_CASE("An architecture without a profile borrows one and says so") {
  const DeviceFacts facts = device_profile_for_arch("sm_121a");
  CHECK(facts.name == "a100 as sm_121a");
  CHECK(facts.target == Target{Executor::cuda, "sm_121a"});
  CHECK(facts.multiprocessors == device_profile("a100").multiprocessors);
}

TEST_CASE("Unknown names and texts that are no architecture are refused") {
  const std::string message = message_of<InvalidRequest>([] { (void)device_profile("H200"); });
  CHECK(contains(message, "device 'H200' is unknown; give one of h200, h100"));
  CHECK(contains(message, "host"));
  for (const char* arch : {"", "sm_", "sm_9", "sm_9000", "sm_90b", "90a", "compute_90", "sm_90a "})
    CHECK(contains(message_of<InvalidRequest>([&] { (void)device_profile_for_arch(arch); }),
                   "'" + std::string(arch) + "' is no architecture"));
}

TEST_CASE("A compute capability is the architecture-specific target from 9.0 on") {
  CHECK(arch_of_capability(8, 0) == "sm_80");
  CHECK(arch_of_capability(8, 9) == "sm_89");
  CHECK(arch_of_capability(9, 0) == "sm_90a");
  CHECK(arch_of_capability(10, 3) == "sm_103a");
  CHECK(arch_of_capability(12, 1) == "sm_121a");
}

TEST_SUITE_END();

}  // namespace jitsmith
