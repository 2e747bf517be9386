#include <jitsmith/jit/nvrtc_compiler.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include <jitsmith/jit/elf.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_library.hpp>

#include <pthread.h>
#include <sys/resource.h>

#include "installed_nvrtc.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;

namespace {

// Static variables of functions get names of internal linkage, which NVRTC numbers per process unless it is
// told a seed.
const char* const k_kernel_text = R"(
#include "device/scale.cuh"
namespace demo {
static __device__ int launches;
template <int N>
__global__ void scale(float* out, const float* in, float factor) {
  static __device__ int calls;
  if (threadIdx.x == 0) { ++calls; ++launches; }
  for (int i = 0; i < N; ++i) out[threadIdx.x * N + i] = scaled(in[threadIdx.x * N + i], factor);
}
}
)";

SpecializedSource kernel(int n = 4) {
  return {{"demo/scale.cu", k_kernel_text},
          {{"device/scale.cuh",
            "#pragma once\n__device__ inline float scaled(float x, float by) { return x * by; }\n"}},
          "demo::scale<" + std::to_string(n) + ">"};
}

std::optional<CompileError> failure_of(NvrtcCompiler& compiler, const SpecializedSource& source,
                                       const std::string& arch = "sm_90a") {
  try {
    compiler.compile(source, arch);
    return std::nullopt;
  } catch (const CompileError& error) {
    return error;
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void run_on_small_stack(std::size_t bytes, std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, body, &work) == 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
}

// How many instructions of `code` have each opcode: the low 12 bits of 16 bytes, the same from sm_80 to
// sm_120.
std::size_t count_opcode(const Binary& binary, std::uint64_t opcode) {
  const auto text = ElfView::parse(binary.code)->section(".text." + binary.facts.lowered_name);
  REQUIRE(text);
  std::size_t count = 0;
  for (std::size_t at = 0; at + 16 <= text->bytes.size(); at += 16)
    count += (*read_at<std::uint32_t>(text->bytes, at) & 0xfff) == opcode;
  return count;
}

constexpr std::uint64_t k_fmul = 0x220;
constexpr std::uint64_t k_fadd = 0x221;
constexpr std::uint64_t k_ffma = 0x223;

bool has_fixed_seed(NvrtcCompiler& compiler) {
  if (NvrtcLibrary(compiler.library_path()).at_least(12, 9)) return true;
  MESSAGE("SKIP: NVRTC " << compiler.version() << " numbers names of internal linkage per process");
  return false;
}

constexpr const char* k_output_variable = "JITSMITH_TEST_OUTPUT";

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_SUITE("NvrtcCompiler") {
  TEST_CASE("every architecture compiles, exactly as asked") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    std::set<std::vector<std::byte>> different;
    for (const auto& arch : known_archs(compiler)) {
      CAPTURE(arch);
      const Binary binary = compiler.compile(kernel(), arch);
      CHECK(ElfView::parse(binary.code).has_value());
      CHECK(contains(binary.log, "for '" + arch + "'"));
      CHECK(binary.facts.lowered_name == "_ZN4demo5scaleILi4EEEvPfPKff");
      CHECK(binary.facts.param_bytes == std::vector<std::uint32_t>{8, 8, 4});
      different.insert(binary.code);
    }
    CHECK(different.size() == known_archs(compiler).size());
  }

  TEST_CASE("every architecture that the library lists is accepted") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    for (const auto& arch : compiler.supported_archs()) {
      CAPTURE(arch);
      const auto failure = failure_of(compiler, source_of("__global__ void k() {}", "k"), arch);
      CHECK_MESSAGE(!failure, (failure ? failure->what() : ""));
    }
  }

  TEST_CASE("options fix the arithmetic, and name the architecture first") {
    const NvrtcCompiler plain(NvrtcSearch{});
    CHECK(plain.options("sm_90a") ==
          std::vector<std::string>{"--gpu-architecture=sm_90a", "--std=c++17", "--fmad=false", "--ftz=false",
                                   "--prec-div=true", "--prec-sqrt=true", "--no-source-include",
                                   "--modify-stack-limit=false", "--ptxas-options=--verbose"});
    const NvrtcCompiler other(NvrtcSearch{}, {.line_info = true, .extra_options = {"-DX=a b"}});
    auto longer = plain.options("sm_80");
    longer.insert(longer.end(), {"--generate-line-info", "-DX=a b"});
    CHECK(other.options("sm_80") == longer);
  }

  TEST_CASE("identity and path need no loading, and name what compiles") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcSearch flagged = *search;
    flagged.append_flags = "-X";
    NvrtcCompiler compiler(flagged);
    CHECK(compiler.library_path() == locate_nvrtc(*search));
    CHECK(compiler.identity().starts_with("nvrtc build-id="));
    CHECK(compiler.identity().ends_with(" append-flags=\"-X\""));
  }

  TEST_CASE("without NVRTC only what needs it fails") {
    NvrtcCompiler compiler(NvrtcSearch{});
    CHECK_NOTHROW(compiler.options("sm_80"));
    CHECK_THROWS_AS(compiler.identity(), CompileError);
    CHECK_THROWS_AS(compiler.version(), CompileError);
    const auto failure = failure_of(compiler, kernel());
    REQUIRE(failure);
    CHECK(contains(failure->what(), "no NVRTC was found"));
  }

  TEST_CASE("a product and a sum are not contracted") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const std::string text =
        "__global__ void two(float* o, const float* a) { o[0] = a[0] * a[1] + a[2]; }\n"
        "__global__ void one(float* o, const float* a) { o[0] = __fmaf_rn(a[0], a[1], a[2]); }\n";
    for (const auto& arch : known_archs(compiler)) {
      CAPTURE(arch);
      const Binary fused = compiler.compile(source_of(text, "one"), arch);
      CHECK(count_opcode(fused, k_ffma) == 1);  // so that a miss below means something
      const Binary separate = compiler.compile(source_of(text, "two"), arch);
      CHECK(count_opcode(separate, k_ffma) == 0);
      CHECK(count_opcode(separate, k_fmul) == 1);
      CHECK(count_opcode(separate, k_fadd) == 1);
    }
  }

  TEST_CASE("line information is there if asked for") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler plain(*search);
    NvrtcCompiler lines(*search, {.line_info = true, .extra_options = {}});
    const auto with = lines.compile(kernel(), "sm_90a");
    const auto without = plain.compile(kernel(), "sm_90a");
    CHECK(ElfView::parse(with.code)->section(".debug_line"));
    CHECK_FALSE(ElfView::parse(without.code)->section(".debug_line"));
    CHECK(with.facts == without.facts);
  }
}

TEST_SUITE("NvrtcCompiler, equal bytes") {
  // Run by the next case, in processes of their own.
  TEST_CASE("write a cubin for another process" * doctest::skip()) {
    const char* output = std::getenv(k_output_variable);
    if (output == nullptr) return;
    NvrtcCompiler compiler(nvrtc_search_from_environment());
    // An order of compiles of its own: what was compiled before must leave no trace.
    compiler.compile(kernel(7), "sm_80");
    const Binary binary = compiler.compile(kernel(), "sm_90a");
    std::ofstream(output, std::ios::binary)
        .write(reinterpret_cast<const char*>(binary.code.data()),
               static_cast<std::streamsize>(binary.code.size()));
  }

  TEST_CASE("in another process, folder and order [process]") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    if (!has_fixed_seed(compiler)) return;
    const Binary here = compiler.compile(kernel(), "sm_90a");
    const std::string expected(reinterpret_cast<const char*>(here.code.data()), here.code.size());

    // A working directory with files of the very names that the source uses, which must not be read.
    const TempDir decoys;
    for (const char* path : {"device/scale.cuh", "scale.cuh", "demo/scale.cu"}) {
      const auto full = decoys.path() / path;
      std::filesystem::create_directories(full.parent_path());
      std::ofstream(full) << "#error decoy\n";
    }
    const std::string self = std::filesystem::canonical("/proc/self/exe").string();
    for (const std::string& folder : {decoys.path().string(), std::string("/")}) {
      const std::string output = decoys / "out.cubin";
      std::filesystem::remove(output);
      const std::string command = "cd '" + folder + "' && " + k_output_variable + "='" + output + "' '" +
                                  self +
                                  "' --no-skip --test-case='write a cubin for another process' > /dev/null";
      REQUIRE(std::system(command.c_str()) == 0);
      CHECK(read_file(output) == expected);
    }
  }

  TEST_CASE("in another thread, again, and after other compiles") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    if (!has_fixed_seed(compiler)) return;
    const Binary first = compiler.compile(kernel(), "sm_90a");
    compiler.compile(kernel(5), "sm_90a");
    std::array<Binary, 4> results;
    std::array<std::thread, 4> threads;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i] = std::thread([&, i] {
        const int n = i % 2 == 0 ? 4 : 5;
        results[i] = compiler.compile(kernel(n), "sm_90a");
      });
    }
    for (auto& thread : threads) thread.join();
    for (const std::size_t i : {0u, 2u}) {
      CHECK(results[i].code == first.code);
      CHECK(results[i].facts == first.facts);
    }
    for (const std::size_t i : {1u, 3u})
      CHECK(results[i].facts.lowered_name == "_ZN4demo5scaleILi5EEEvPfPKff");
    CHECK(results[1].code == results[3].code);
  }

  TEST_CASE("a file in the working directory answers no include") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const TempDir decoys;
    std::ofstream(decoys / "decoy.cuh") << "#define DECOY\n";
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(decoys.path());
    const auto failure =
        failure_of(compiler, source_of("#include \"decoy.cuh\"\n__global__ void k() {}", "k"));
    std::filesystem::current_path(before);
    REQUIRE(failure);
    CHECK(contains(failure->what(), "could not open source file \"decoy.cuh\""));
  }
}

TEST_SUITE("NvrtcCompiler, stacks") {
  TEST_CASE("the stack limit of the process is never touched") {
    const auto search = installed_nvrtc();
    if (!search) return;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_STACK, &before) == 0);
    const rlimit finite{std::min<rlim_t>(before.rlim_cur, rlim_t{8} << 20), before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_STACK, &finite) == 0);

    NvrtcCompiler compiler(*search);
    std::atomic<bool> done = false;
    std::size_t samples = 0;
    std::size_t changed = 0;
    std::thread watcher([&] {
      while (!done) {
        rlimit now{};
        ::getrlimit(RLIMIT_STACK, &now);
        ++samples;
        changed += now.rlim_cur != finite.rlim_cur;
      }
    });
    for (int n = 1; n <= 3; ++n) compiler.compile(kernel(n), "sm_90a");
    done = true;
    watcher.join();
    CHECK(samples > 100);
    CHECK(changed == 0);
    ::setrlimit(RLIMIT_STACK, &before);
  }

  TEST_CASE("a caller with a stack of 64 KiB can compile and fail") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    std::optional<Binary> binary;
    std::optional<CompileError> failure;
    run_on_small_stack(std::size_t{64} << 10, [&] {
      binary = compiler.compile(kernel(), "sm_90a");
      failure = failure_of(compiler, source_of("broken", "k"));
    });
    CHECK(binary);
    CHECK(failure);
  }

  TEST_CASE("deeply nested source does not overflow the compiler's stack") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const std::size_t depth = 200;
    const std::string text = "__global__ void k(int* p) { p[0] = " + std::string(depth, '(') + "p[1]" +
                             std::string(depth, ')') + "; }";
    CHECK_FALSE(failure_of(compiler, source_of(text, "k")));
  }
}

TEST_SUITE("NvrtcCompiler, errors") {
  TEST_CASE("a syntax error names template, instantiation, architecture and line") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const auto failure = failure_of(
        compiler, source_of("template <int N>\n__global__ void k(int* p) {\n  p[0] = 3 +;\n}\n", "k<1>"));
    REQUIRE(failure);
    const std::string message = failure->what();
    CHECK(message ==
          "compiling family/kernel.cu as k<1> for sm_90a failed: family/kernel.cu(3): error: expected an "
          "expression");
    CHECK(contains(failure->log, "options: --gpu-architecture=sm_90a --std=c++17"));
    CHECK(contains(failure->log, "1 error detected"));
    CHECK(contains(failure->log, ">    3 |   p[0] = 3 +;"));
    CHECK(contains(failure->log, "     2 | __global__ void k(int* p) {"));
  }

  TEST_CASE("the text of a static_assert reaches the user") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const auto failure = failure_of(
        compiler,
        source_of("template <int N>\n__global__ void k() { static_assert(N > 3, \"N must be above 3\"); }",
                  "k<1>"));
    REQUIRE(failure);
    CHECK(contains(failure->what(), "N must be above 3"));
  }

  TEST_CASE("a missing include and an error in a header are shown at their place") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const auto missing = failure_of(compiler, source_of("\n#include \"device/none.cuh\"\n", "k"));
    REQUIRE(missing);
    CHECK(contains(missing->what(), "family/kernel.cu(2)"));
    CHECK(contains(missing->what(), "could not open source file \"device/none.cuh\""));

    SpecializedSource source = source_of("#include \"device/a.cuh\"\n__global__ void k() {}", "k");
    source.headers = {{"device/a.cuh", "#pragma once\n__device__ int f() { return oops; }\n"}};
    const auto broken = failure_of(compiler, source);
    REQUIRE(broken);
    CHECK(contains(broken->what(), "device/a.cuh(2): error: identifier \"oops\" is undefined"));
    CHECK(contains(broken->log, ">    2 | __device__ int f() { return oops; }"));
  }

  TEST_CASE("a rejected instantiation is called that") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    for (const char* instantiation : {"k<1, 2>", "other<1>", "k<"}) {
      CAPTURE(instantiation);
      const auto failure =
          failure_of(compiler, source_of("template <int N> __global__ void k() {}", instantiation));
      REQUIRE(failure);
      CHECK(contains(failure->what(), "the instantiation " + std::string(instantiation) +
                                          " of family/kernel.cu was rejected for sm_90a: "));
      CHECK_FALSE(contains(failure->what(), "__nv_name_map"));
    }
  }

  TEST_CASE("an unknown architecture names the known ones") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const auto failure = failure_of(compiler, kernel(), "sm_999");
    REQUIRE(failure);
    CHECK(contains(failure->what(), "does not know the architecture sm_999 (it knows "));
    CHECK(contains(failure->what(), "sm_80, "));
    CHECK(contains(failure->what(), "install a newer NVRTC"));
  }

  TEST_CASE("an unknown option is named") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search, {.line_info = false, .extra_options = {"--no-such-option"}});
    const auto failure = failure_of(compiler, kernel());
    REQUIRE(failure);
    CHECK(contains(failure->what(), "unrecognized option --no-such-option"));
  }

  TEST_CASE("what ptxas refuses is told in its words") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    const auto failure = failure_of(
        compiler,
        source_of(
            "__global__ void k(int* p) { __shared__ int s[100000]; s[threadIdx.x] = p[0]; __syncthreads(); "
            "p[1] = s[1]; }",
            "k"));
    REQUIRE(failure);
    CHECK(contains(failure->what(), "uses too much shared data"));
  }

  TEST_CASE("failures in parallel do not mix") {
    const auto search = installed_nvrtc();
    if (!search) return;
    NvrtcCompiler compiler(*search);
    std::array<std::string, 4> messages;
    std::array<std::thread, 4> threads;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i] = std::thread([&, i] {
        const auto failure = failure_of(compiler, source_of("#error wrong " + std::to_string(i), "k"));
        messages[i] = failure ? failure->what() : "compiled";
      });
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < messages.size(); ++i)
      CHECK(contains(messages[i], "wrong " + std::to_string(i)));
  }
}
