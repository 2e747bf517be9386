#include <jitsmith/jit/host_compiler.hpp>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/temp_directory.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "support/child.hpp"
#include "support/compiler_script.hpp"
#include "support/host_kernel.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_kernel = R"(#include "device/launch.cuh"
namespace jitsmith {
struct Pair { int64 a; int32 b, c; };
template <int N>
JITSMITH_KERNEL void probe(int8 a, int16 b, int32 c, int64 d, Pair e, uint32* out) {
  static_assert(N > 0, "N must be positive, for the sake of the test");
  *out = static_cast<uint32>(a + b + c + d + e.a + e.b + e.c) + thread_index_x();
}
}
)";

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

void write_script(const std::string& path, const std::string& body) {
  std::ofstream(path) << "#!/bin/sh\n" << body;
  fs::permissions(path, fs::perms::owner_all);
}

// The error of a compile that must fail.
CompileError error_of(HostCompiler& compiler, const SpecializedSource& source) {
  try {
    compiler.compile(source, "host");
  } catch (const CompileError& error) {
    return error;
  }
  FAIL("it compiled");
  return {"", ""};
}

// Whether the compile fails in a way that is not remembered.
bool passes(HostCompiler& compiler) {
  try {
    compiler.compile(host_source(k_kernel, "jitsmith::probe<1>"), "host");
  } catch (const TransientCompileError&) {
    return true;
  } catch (const CompileError&) {
  }
  return false;
}

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(resource, &both);
}

// Whether a compile in a child process that has prepared itself so fails, with `what` in its sentence, but
// may succeed another time.
bool fails_in_a_child_that(const std::function<void()>& prepares, std::string_view what = "") {
  const SpecializedSource source = host_source(k_kernel, "jitsmith::probe<1>");
  return status_of(start([&] {
           prepares();
           try {
             HostCompiler().compile(source, "host");
           } catch (const TransientCompileError& error) {
             return std::string_view(error.what()).find(what) != std::string_view::npos;
           }
           return false;
         })) == 0;
}

}  // namespace

TEST_SUITE_BEGIN("HostCompiler");

TEST_CASE("Facts name the export and the size of each parameter") {
  const Binary binary = compile_for_host(k_kernel, "jitsmith::probe<1>");
  CHECK(binary.facts ==
        KernelFacts{.lowered_name = "jitsmith_host_kernel", .param_bytes = {1, 2, 4, 8, 16, 8}});
  CHECK(binary.log == "");
  const Binary no_params =
      compile_for_host("#include \"device/prelude.cuh\"\nvoid nothing() {}\n", "nothing");
  CHECK(no_params.facts.param_bytes.empty());
}

TEST_CASE("Equal sources give equal bytes, wherever the temporary files lie") {
  TempDir here;
  const SpecializedSource source = host_source(k_kernel, "jitsmith::probe<2>", "folder/probe.cu");
  const Binary one = HostCompiler().compile(source, "host");
  const Binary two = HostCompiler({.temp_directory = here.path().string()}).compile(source, "host");
  REQUIRE(one.code.size() > 0);
  CHECK(one.code == two.code);
}

TEST_CASE("An error is one sentence; its log tells the options, the numbered lines and the whole output") {
  HostCompiler compiler;
  const CompileError error =
      error_of(compiler, host_source(k_kernel, "jitsmith::probe<-1>", "folder/probe.cu"));
  const std::string what = error.what();
  CHECK(what.starts_with("compiling folder/probe.cu as jitsmith::probe<-1> for host failed: "));
  contains(what, "folder/probe.cu:6:");
  contains(what, "error: static assertion failed: N must be positive, for the sake of the test");
  CHECK(what.find('\n') == std::string::npos);
  contains(error.log, "options: -std=c++20");
  contains(error.log, "-ffp-contract=off");
  contains(error.log, "exit status 1");
  contains(error.log,
           "\n>    6 |   static_assert(N > 0, \"N must be positive, for the sake of the test\");\n");
  contains(error.log, "\n     7 |   *out = ");
  contains(error.log, "In instantiation of");
}

TEST_CASE("An error in a header shows the header's lines") {
  HostCompiler compiler;
  SpecializedSource source = host_source("#include \"mine/x.cuh\"\n", "nothing");
  source.headers.push_back(
      {"mine/x.cuh", "#include \"device/prelude.cuh\"\nint twice(int x) { return y; }\n"});
  const CompileError error = error_of(compiler, source);
  contains(error.what(), "failed: mine/x.cuh:2:");
  contains(error.log, "mine/x.cuh:\n     1 | #include \"device/prelude.cuh\"\n>    2 | int twice");
}

TEST_CASE("An instantiation that the template refuses is told as such") {
  HostCompiler compiler;
  contains(error_of(compiler, host_source(k_kernel, "jitsmith::prob<1>")).what(),
           "the instantiation jitsmith::prob<1> of probe.cu was rejected for host: ");
}

TEST_CASE("Warnings reach the log") {
  contains(compile_for_host("#include \"device/prelude.cuh\"\n#warning mind the gap\nvoid nothing() {}\n",
                            "nothing")
               .log,
           "mind the gap");
}

TEST_CASE("A path that leaves the source folder is refused") {
  HostCompiler compiler;
  for (const char* path : {"", "/etc/x.cu", "../x.cu", "a/../../x.cu", "a\"b.cu", "a\nb.cu"})
    contains(error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>", path)).what(),
             "is not a plain relative path");
}

TEST_CASE("A missing compiler is one sentence that names what was searched") {
  HostCompiler compiler({.search_path = "/nowhere:/nowhere/else"});
  const std::string what = error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>")).what();
  CHECK(what ==
        "no C++ compiler for the host target: searched /nowhere:/nowhere/else for c++, g++, clang++; install "
        "g++ or clang++, "
        "or name one by JITSMITH_HOST_CXX or HostCompilerOptions::compiler");
  CHECK_THROWS_AS(compiler.identity(), CompileError);
  HostCompiler named({.compiler = "/nowhere/cc"});
  CHECK_THROWS_WITH_AS(named.identity(), doctest::Contains("/nowhere/cc"), CompileError);
}

TEST_CASE("Nothing is left in the temporary folder") {
  TempDir here;
  HostCompiler compiler({.temp_directory = here.path().string()});
  compiler.compile(host_source(k_kernel, "jitsmith::probe<1>"), "host");
  CHECK(fs::is_empty(here.path()));
  error_of(compiler, host_source(k_kernel, "jitsmith::probe<0>"));
  CHECK(fs::is_empty(here.path()));
}

TEST_CASE("A temporary folder that is missing is a failure that passes") {
  TempDir here;
  HostCompiler compiler({.temp_directory = here / "later"});
  const SpecializedSource source = host_source(k_kernel, "jitsmith::probe<1>");
  CHECK_THROWS_WITH_AS(compiler.compile(source, "host"),
                       doctest::Contains("make the folder or set TMPDIR to"), TransientCompileError);
  fs::create_directory(here / "later");
  CHECK(compiler.compile(source, "host").code.size() > 0);
}

TEST_CASE("A file system that takes nothing is a failure that passes") {
  // No file may grow beyond 16 bytes: as on a full disk, writes fail.
  CHECK(fails_in_a_child_that([] {
    signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_FSIZE, 16);
  }));
}

TEST_CASE("A limit on the size of files does not kill the program") {
  CHECK(fails_in_a_child_that([] { limit(RLIMIT_FSIZE, 16); }, "File too large"));
}

// UBSan's check of dynamic types needs a descriptor itself.
TEST_CASE("A process that cannot be started for want of resources is a failure that passes [nosan]") {
  // One locks the temporary directory, its files are written through the other: too few for the pipe.
  CHECK(fails_in_a_child_that(
      [] {
        const int next = dup(0);
        close(next);
        limit(RLIMIT_NOFILE, static_cast<rlim_t>(next) + 2);
      },
      "cannot run the host compiler"));
}

TEST_CASE("What a compiler leaves running is not waited for, and its last words are heard") {
  TempDir here;
  HostCompilerOptions options;
  options.compiler = here / "c++";
  write_compiler_script(options.compiler, "sleep 20 &\necho 'a.cu:1:1: error: no' >&2\nexit 1");
  HostCompiler compiler(options);
  const auto start = std::chrono::steady_clock::now();
  const CompileError error = error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CHECK(error.log.find("a.cu:1:1: error: no") != std::string::npos);
}

TEST_CASE("A file that is no program is an error that stays") {
  TempDir here;
  std::ofstream(here / "c++") << "no program\n";
  fs::permissions(here / "c++", fs::perms::owner_all);
  HostCompiler compiler({.search_path = here.path().string()});
  CHECK_THROWS_AS(compiler.compile(host_source(k_kernel, "jitsmith::probe<1>"), "host"), CompileError);
  CHECK_FALSE(passes(compiler));
}

TEST_CASE("Identity is the build-id, without a path, and found once") {
  HostCompiler compiler;
  const std::string identity = compiler.identity();
  contains(identity, " build-id ");
  CHECK(identity.find('/') == std::string::npos);
  CHECK(compiler.identity() == identity);
}

TEST_CASE("A compiler without a build-id is known by its bytes") {
  TempDir here;
  write_script(here / "c++", "exit 1\n");
  const HostCompilerOptions options{.search_path = here.path().string()};
  const std::string identity = HostCompiler(options).identity();
  CHECK(identity.starts_with("c++ xxh3 "));
  write_script(here / "c++", "exit 2\n");
  CHECK(HostCompiler(options).identity() != identity);
}

TEST_CASE("A compiler cache on the search path is passed over") {
  TempDir first, second;
  write_script(first / "ccache", "exit 1\n");
  fs::create_symlink(first / "ccache", first / "c++");
  write_script(second / "g++", "exit 1\n");
  const HostCompiler compiler({.search_path = first.path().string() + ":" + second.path().string()});
  CHECK(compiler.compiler_path() == second / "g++");
}

TEST_CASE("The compiler inherits no descriptor and no variable") {
  TempDir here;
  write_script(here / "c++",
               "PATH=/usr/bin:/bin\nenv\nfor f in 3 4 5 6 7 8 9; do test -e /proc/self/fd/$f && echo open "
               "$f\ndone\nexit 3\n");
  setenv("CPATH", "/leaked", 1);
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  REQUIRE(leak >= 3);
  HostCompiler compiler({.search_path = here.path().string()});
  const CompileError error = error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>"));
  close(leak);
  unsetenv("CPATH");
  contains(error.log, "exit status 3");
  contains(error.log, "LC_ALL=C");
  CHECK(error.log.find("/leaked") == std::string::npos);
  // 10 and up are the shell's own: it reads the script through one.
  CHECK(error.log.find("open ") == std::string::npos);
}

TEST_CASE("A compiler that is killed says by which signal, and may live next time") {
  TempDir here;
  write_script(here / "c++", "kill -KILL $$\n");
  HostCompiler compiler({.search_path = here.path().string()});
  contains(error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>")).what(), "signal 9 (Killed)");
  CHECK(passes(compiler));
}

TEST_CASE("A pass of the compiler that is killed, or wants memory or disk, may live next time") {
  TempDir here;
  HostCompiler compiler({.search_path = here.path().string()});
  for (const char* said :
       {"c++: fatal error: Killed signal terminated program cc1plus",
        "clang++: error: unable to execute command: Killed",
        "cc1plus: out of memory allocating 65536 bytes after a total of 0 bytes",
        "as: kernel.o: No space left on device", "virtual memory exhausted: Cannot allocate memory"}) {
    CAPTURE(said);
    write_script(here / "c++", "echo '" + std::string(said) + "'; exit 1\n");
    contains(error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>")).what(), said);
    CHECK(passes(compiler));
  }
  write_script(here / "c++", "echo 'probe.cu:1:1: error: bad'; exit 1\n");
  CHECK_FALSE(passes(compiler));
}

TEST_CASE("A full folder of temporary files is named as people know it, with what to do") {
  TempDir here;
  write_script(here / "c++", "echo \"as: $TMPDIR/k.o: No space left on device\"; exit 1\n");
  // As a worker of `jitsmith warm` has it: inside a temporary directory.
  const TempDirectory outer(here.path().string());
  for (const std::string& folder : {here.path().string(), outer.path()}) {
    HostCompiler compiler({.search_path = here.path().string(), .temp_directory = folder});
    const CompileError error = error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>"));
    contains(error.what(), "(as: k.o: No space left on device); make room in " + here.path().string() +
                               " or set TMPDIR to another folder");
    CHECK(std::string(error.what()).find("jitsmith.t-") == std::string::npos);
  }
}

TEST_CASE("A compiler that succeeds without output is an error") {
  TempDir here;
  write_script(here / "c++", "exit 0\n");
  HostCompiler compiler({.search_path = here.path().string()});
  contains(error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>")).what(), "exit status 0");
  write_script(here / "c++", "echo no object > ../kernel.so\n");
  contains(error_of(compiler, host_source(k_kernel, "jitsmith::probe<1>")).what(),
           "is it an ELF64 shared object");
}
