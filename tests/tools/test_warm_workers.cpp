// The worker processes of jitsmith warm: what becomes of them, of their kernels, and of what they say.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/stub_server.hpp"
#include "warm_workshop.hpp"

using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

bool within_seconds(int seconds, const std::function<bool()>& holds) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return holds();
}

// Process ids that a stub has written, one a line.
std::vector<pid_t> pids_in(const std::string& file) {
  std::ifstream stream(file);
  std::vector<pid_t> pids;
  for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
  return pids;
}

bool all_gone(const std::vector<pid_t>& pids) {
  return std::ranges::all_of(pids, [](pid_t pid) {
    // A zombie is no more than a name: where nobody reaps orphans it stays.
    const std::string stat = text_of_file("/proc/" + std::to_string(pid) + "/stat");
    return stat.empty() || has(stat, ") Z ");
  });
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith warm workers");

TEST_CASE("workers compile what is missing, and a second run finds it") {
  const Workshop shop;
  const Json first = Json::parse(shop.tool()(with(shop.warm(), {"--json", "--jobs", "2"})).out);
  CHECK(outcomes(first) == "co co co co ");
  CHECK(first["compiled"] == 4);
  CHECK(first["peak_worker_bytes"] > 1 << 20);
  CHECK(first["kernels"][0]["milliseconds"] > 0);
  const ToolResult second = shop.tool()(shop.warm());
  CHECK(second.status == 0);
  CHECK(has(second.out, k_counts + "4 already cached, 0 compiled, 0 missing, 0 failed\n"));
  CHECK(has(second.out, "[4/4] cached   host skinny_gemm simt:"));
  check_sound(shop.tool());
  CHECK(shop.no_temporary_left());
}

TEST_CASE("the statistics of a run count what its workers did") {
  const Workshop shop;
  const auto statistics = [&] {
    const std::string err = shop.tool()(with(shop.warm(), {"--verbose", "--jobs", "2"})).err;
    const std::size_t place = err.find("[cache.statistics] ");
    REQUIRE_MESSAGE(place != std::string::npos, err);
    return err.substr(place);
  };
  const std::string first = statistics();
  CHECK_MESSAGE(has(first, "hits=0 "), first);
  CHECK_MESSAGE(has(first, " misses=8 "), first);  // each was missed by who looked and by who compiled
  CHECK_MESSAGE(has(first, " written=4 "), first);
  const std::string second = statistics();
  CHECK_MESSAGE(has(second, "hits=4 "), second);
  CHECK_MESSAGE(has(second, " written=0 "), second);
}

TEST_CASE("a worker that dies is one failed kernel, and a later run has it to do") {
  for (const char* signal : {"SEGV", "KILL"}) {
    const Workshop shop(std::string("if [ -e $here/crash -a $TILE = 2 ]; then\n"
                                    "  echo the compiler is dying >/proc/$PPID/fd/2; kill -") +
                        signal + " $PPID; sleep 10\nfi");
    std::ofstream(shop / "crash").flush();
    const char* const jobs = signal[0] == 'S' ? "1" : "2";
    Tool tool = shop.tool();
    tool.set("ASAN_OPTIONS", "handle_segv=0");  // it would make an exit status of the signal
    const ToolResult result = tool(with(shop.warm(), {"--jobs", jobs}));
    CHECK(result.status == 1);
    CHECK(has(result.out, k_counts + "0 already cached, 3 compiled, 0 missing, 1 failed\n"));
    CHECK(has(result.err, "tile_m=2"));
    CHECK(has(result.err, signal[0] == 'S'
                              ? "failed: its worker process ended with signal 11 (Segmentation fault)"
                              : "failed: its worker process ended with signal 9 (Killed)"));
    CHECK(has(result.err, "  its standard error:\n    the compiler is dying\n"));
    check_sound(shop.tool());

    std::filesystem::remove(shop / "crash");
    const Json again = Json::parse(shop.tool()(with(shop.warm(), {"--json"})).out);
    CHECK(outcomes(again) == "ca co ca ca ");
  }
}

TEST_CASE("what a compiler says of a kernel that it refuses is told with the kernel") {
  const Workshop shop(
      "if [ $TILE = 4 ]; then echo \"skinny_gemm/simt.cu:3:1: error: no such thing\"; exit 1; fi");
  const ToolResult text = shop.tool()(shop.warm());
  CHECK(text.status == 1);
  CHECK(has(text.err, "tile_m=4"));
  CHECK(has(text.err, "no such thing"));
  CHECK(has(text.err, "  the compiler:\n    "));
  const ToolResult result = shop.tool()(with(shop.warm(), {"--json"}));
  CHECK(result.status == 1);
  const Json json = Json::parse(result.out);
  CHECK(outcomes(json) == "ca ca fa ca ");
  CHECK(has(json["kernels"][2]["log"], "no such thing"));
}

TEST_CASE("what is compiled and not stored is told with why and what to do, and fails the run") {
  const Workshop shop;
  REQUIRE(shop.tool()(shop.warm()).status == 0);
  const auto entries = entry_files(shop / "cache");
  for (int i = 0; i < 2; ++i) make_newer(entries[i]);
  const std::string bytes = bytes_of(entries[0]);
  const ToolResult result = shop.tool()(shop.warm());
  CHECK(result.status == 1);
  CHECK(has(result.out, k_counts + "2 already cached, 2 compiled, 0 missing, 0 failed\n"));
  CHECK(result.err ==
        "jitsmith: 2 kernels compiled but not stored: an entry of a newer jitsmith has this place in " +
            (shop / "cache") +
            " and is left alone; use that jitsmith, or set JITSMITH_CACHE_DIR to another "
            "directory\n");
  CHECK(bytes_of(entries[0]) == bytes);
}

TEST_CASE("what the remote tier did not take of a warm is told, and is no failure") {
  const Workshop shop;
  Tool tool = shop.tool();
  tool.set("JITSMITH_REMOTE", "redis://127.0.0.1:" + std::to_string(free_port()));
  const ToolResult result = tool(shop.warm());
  CHECK(result.status == 0);
  CHECK(has(result.err, "warning: the remote tier took 0 of 4 kernels: "));
  CHECK(std::ranges::count(result.err, '\n') == 1);
}

TEST_CASE("Ctrl-C ends a run by its signal, with a sound cache and nothing left behind") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Workshop shop("echo $PPID $$ >>$here/pids\nif [ -e $here/slow -a $TILE != 1 ]; then sleep 60; fi");
    std::ofstream(shop / "slow").flush();
    StartedTool run(shop.tool().environment(), with(shop.warm(), {"--jobs", "2"}));
    // The third compile waits as well, and the first has been stored by then.
    REQUIRE(within_seconds(60, [&] { return pids_in(shop / "pids").size() >= 6; }));
    run.send(signal);
    const int status = run.wait();
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(has(run.out(), k_counts + "0 already cached, 1 compiled, 0 missing, 0 failed, 3 not reached\n"));
    CHECK(within_seconds(10, [&] { return all_gone(pids_in(shop / "pids")); }));
    CHECK(shop.no_temporary_left());
    check_sound(shop.tool());

    std::filesystem::remove(shop / "slow");
    CHECK(
        has(shop.tool()(shop.warm()).out, k_counts + "1 already cached, 3 compiled, 0 missing, 0 failed\n"));
  }
}

TEST_CASE("Ctrl-C ends a run at once while it reads what is wanted") {
  const Workshop shop;
  {
    std::ofstream recording(shop / "recording");
    for (int i = 0; i < 50'000; ++i)
      recording
          << R"({"op":"skinny_gemm","arch":"host","variant":"simt","params":{},"request":{"m":1,"k":8,"n":)"
          << i + 1 << "}}\n";
  }
  StartedTool run(shop.tool().environment(), {"warm", "--recording", shop / "recording", "--arch", "sm_90a"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  run.send(SIGINT);
  const int status = run.wait();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
  CHECK(run.out().empty());
  CHECK(shop.no_temporary_left());
}

TEST_CASE("workers and their compilers do not outlive a killed run") {
  const Workshop shop("echo $PPID $$ >>$here/pids\nsleep 60");
  StartedTool run(shop.tool().environment(), with(shop.warm(), {"--jobs", "2"}));
  REQUIRE(within_seconds(60, [&] { return pids_in(shop / "pids").size() >= 4; }));
  run.send(SIGKILL);
  run.wait();
  CHECK(within_seconds(10, [&] { return all_gone(pids_in(shop / "pids")); }));
  check_sound(shop.tool());
}

TEST_CASE("a worker has its own three pipes and no other worker's") {
  // A worker closes its copy of the compiler's end when the compiler runs already.
  const Workshop shop(
      "pipes() { ls -l /proc/$PPID/fd | grep -c pipe; }\n"
      "for i in 1 2 3 4 5 6 7 8 9; do [ $(pipes) = 5 ] && break; sleep 0.2; done\n"
      "pipes >>$here/pipes");
  CHECK(shop.tool()(with(shop.warm(), {"--jobs", "4"})).status == 0);
  // Input, answers, standard error, and that again as standard output; and one to the compiler.
  CHECK(text_of_file(shop / "pipes") == "5\n5\n5\n5\n");
}

// The sanitizers need descriptors themselves.
TEST_CASE("without room for all workers fewer do it, and without any there is a sentence [nosan]") {
  const Workshop shop;
  // Beside those that this process itself was started with and hands on, as under CTest.
  const auto with_descriptors = [&](rlim_t count) {
    for (int descriptor = 3; descriptor < 64; ++descriptor)
      if (const int flags = ::fcntl(descriptor, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
    return [=] {
      const rlimit limit{count, count};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    };
  };
  StartedTool none(shop.tool().environment(), shop.warm(), with_descriptors(10));
  CHECK(WEXITSTATUS(none.wait()) == 1);
  CHECK(has(none.err(), "no worker process can be started: "));
  CHECK(has(none.err(), "Too many open files"));
  CHECK(has(none.out(), "4 not reached"));
  StartedTool json(shop.tool().environment(), with(shop.warm(), {"--json"}), with_descriptors(10));
  CHECK(WEXITSTATUS(json.wait()) == 1);
  CHECK(has(Json::parse(json.out()).value("trouble", ""), "Too many open files"));
  StartedTool few(shop.tool().environment(), with(shop.warm(), {"--jobs", "100"}), with_descriptors(16));
  CHECK(WEXITSTATUS(few.wait()) == 0);
  CHECK(has(few.out(), "4 compiled"));
}

TEST_CASE("on a terminal there is one line, written over") {
  const Workshop shop("sleep 0.15");
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const std::string name = ::ptsname(terminal);
  StartedTool run(shop.tool().environment(), with(shop.warm(), {"--jobs", "1"}),
                  [&] { ::dup2(::open(name.c_str(), O_WRONLY | O_NOCTTY), STDOUT_FILENO); });
  CHECK(WEXITSTATUS(run.wait()) == 0);
  std::string text(65536, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(terminal, text.data(), text.size()))));
  ::close(terminal);
  CHECK(has(text, "\r\x1b[K[======                  ] 1/4"));
  CHECK(has(text, "] 4/4"));
  CHECK(has(text, "/s  0:0"));
  CHECK(!has(text, "compiled host"));
  CHECK(std::ranges::count(text, '\n') == 1);
}

TEST_SUITE_END();
