#include <jitsmith/jit/cubin_facts.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "installed_nvrtc.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

using Sizes = std::vector<std::uint32_t>;

const char* const k_kernels = R"(
struct Odd { char c[3]; };
struct Empty {};
struct alignas(16) Wide { int x; };
struct Big { char c[20000]; };
extern "C" __global__ void none() {}
extern "C" __global__ void pointers(float* out, const float* in, long long n) { out[0] = in[n]; }
extern "C" __global__ void mixed(char c, short s, int* p, bool b, double d, Odd o, Empty, Wide w, float f) {
  p[0] = c + s + b + int(d) + o.c[1] + w.x + int(f);
}
extern "C" __global__ void big(Big big, int* p, char c) { p[0] = big.c[p[1]] + c; }
extern "C" __global__ void shared(int* p) {
  __shared__ int small[40];
  __shared__ alignas(128) char aligned[100];
  small[threadIdx.x] = p[0]; aligned[threadIdx.x] = char(p[1]);
  __syncthreads();
  p[2] = small[p[3]] + aligned[p[4]];
}
extern "C" __global__ void dynamic(int* p) {
  extern __shared__ int s[];
  s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[p[2]];
}
extern "C" __global__ void frame(int* p) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[p[i] & 63] = i;
  p[0] = local[p[1] & 63];
}
extern "C" __global__ void __launch_bounds__(1024) spills(float* p) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) p[i * 1024 + threadIdx.x] = v[i] * v[(i + 7) % 96];
}
)";

std::string message_of(const Binary& binary, std::string_view log, const std::string& name) {
  try {
    facts_of_cubin(binary.code, log, name);
    return "described";
  } catch (const CompileError& error) {
    return error.what();
  }
}

// `text` with the first `from` replaced; it must be there.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_SUITE("facts_of_cubin") {
  TEST_CASE("sizes are what the source says, on every architecture") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    for (const auto& arch : known_archs(compiler)) {
      CAPTURE(arch);
      const auto facts = [&](const char* name) {
        return compiler.compile(source_of(k_kernels, name), arch).facts;
      };
      CHECK(facts("none").param_bytes.empty());
      CHECK(facts("none").registers > 0);
      CHECK(facts("pointers").param_bytes == Sizes{8, 8, 8});
      CHECK(facts("mixed").param_bytes == Sizes{1, 2, 8, 1, 8, 3, 1, 16, 4});
      CHECK(facts("big").param_bytes == Sizes{20000, 8, 1});
      CHECK(facts("pointers").static_shared_bytes == 0);
      CHECK(facts("shared").static_shared_bytes >= 260);
      CHECK(facts("shared").static_shared_bytes <= 256 + 128);
      CHECK(facts("dynamic").static_shared_bytes == 0);
      CHECK(facts("pointers").local_bytes == 0);

      const KernelFacts frame = facts("frame");
      CHECK(frame.local_bytes >= 256);
      CHECK(frame.spill_store_bytes == 0);
      CHECK(frame.spill_load_bytes == 0);

      // 1024 threads leave 64 registers each for 96 live values.
      const KernelFacts spills = facts("spills");
      CHECK(spills.registers == 64);
      CHECK(spills.spill_store_bytes >= 4 * (96 - 64));
      CHECK(spills.spill_load_bytes >= 4 * (96 - 64));
      CHECK(spills.local_bytes >= 4 * (96 - 64));
    }
  }

  TEST_CASE("the kernel asked for is described, not its neighbour") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const Binary binary = compiler.compile(source_of(k_kernels, "none"), "sm_90a");
    const KernelFacts other = facts_of_cubin(binary.code, binary.log, "pointers");
    CHECK(other.lowered_name == "pointers");
    CHECK(other.param_bytes == Sizes{8, 8, 8});
    CHECK(other.registers != binary.facts.registers);
  }

  TEST_CASE("a fact that cannot be read is an error and never a zero") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const Binary binary = compiler.compile(source_of(k_kernels, "shared"), "sm_90a");
    const std::string& name = binary.facts.lowered_name;
    const auto says = [&](std::string_view log, const std::string& kernel, const std::string& part) {
      const std::string message = message_of(binary, log, kernel);
      CHECK_MESSAGE(message.find(part) != std::string::npos, message);
    };
    says(binary.log, name, "described");
    says("", name, "ptxas reported nothing on it");
    says(binary.log, "absent", "its symbol is missing");
    // The kernel's own report is the one after its heading.
    const std::size_t heading = binary.log.find("Function properties for " + name);
    REQUIRE(heading != std::string::npos);
    const std::string log = binary.log.substr(heading);
    says(replaced(log, "bytes spill stores", "bytes lost"), name, "the size of spill stores is missing");
    says(replaced(log, "bytes spill loads", "bytes lost"), name, "the size of spill loads is missing");
    says(replaced(log, "bytes stack frame", "bytes lost"), name, "disagree on the stack frame");
    says(replaced(log, " registers", " pens"), name, "disagree on registers");
    says(replaced(log, " bytes smem", "99 bytes smem"), name, "disagree on shared memory");
    Binary text = binary;
    text.code.assign(100, std::byte{'x'});
    CHECK(message_of(text, binary.log, name).find("it is not an ELF file") != std::string::npos);
  }

  TEST_CASE("a cut or altered cubin is described or refused, in bounds") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const Binary whole =
        compiler.compile(source_of("__global__ void k(int* p, char c) { p[0] = c; }", "k"), "sm_90a");
    const std::string& name = whole.facts.lowered_name;
    Binary altered = whole;
    for (std::size_t size = 0; size < whole.code.size(); ++size) {
      altered.code.assign(whole.code.begin(), whole.code.begin() + static_cast<std::ptrdiff_t>(size));
      const bool described = message_of(altered, whole.log, name) == "described";
      if (described) CHECK(size > whole.code.size() / 2);  // what is read lies before the program headers
    }
    altered = whole;
    std::size_t refused = 0;
    for (std::size_t at = 0; at < whole.code.size(); ++at) {
      for (const std::byte mask : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
        altered.code[at] ^= mask;
        refused += message_of(altered, whole.log, name) != "described";
        altered.code[at] ^= mask;
      }
    }
    CHECK(refused > 0);
    CHECK(message_of(altered, whole.log, name) == "described");
  }
}
