// A fleet of machines that share one Redis server: processes with a cache directory each, a compiler that
// only pretends, and forty kernels that all of them want.
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>

#include "support/child.hpp"
#include "support/redis_server.hpp"
#include "support/skip.hpp"
#include "support/stub_compiler.hpp"
#include "support/stub_server.hpp"

namespace jitsmith {
namespace {

using namespace test;
using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr int k_machines = 32;
constexpr int k_kernels = 40;
constexpr std::chrono::milliseconds k_limit = 120s;  // nothing may hang

std::vector<Op> ops() {
  std::vector<Op> all;
  for (int i = 0; i < k_kernels; ++i) {
    all.push_back(offset_op(fmt::format("{}// kernel {}\n", k_offset_source, i)));
    all.back().name = fmt::format("offset{}", i);
  }
  return all;
}

// What one machine does from its start: every kernel, planned and launched. True for right results.
bool machine(const Options& options) {
  Engine engine(options);
  for (Op& op : ops()) {
    const std::string name = op.name;
    engine.add(std::move(op));
    const Plan plan = engine.plan({name, {{"n", std::int64_t{100}}}});
    std::vector<float> x(100, 1.5f), y(100, 0.0f);
    plan.launch(nullptr, plan.state().selection.shape, y.data(), static_cast<const float*>(x.data()), 2.0f,
                100);
    if (y != std::vector<float>(100, 3.5f)) return false;
  }
  return true;
}

class Fleet {
 public:
  explicit Fleet(const StubCompiler& compiler) : compiler_(compiler) {}

  // Thirty-two machines are played by the few cores of one here: where the server is sound, its speed is not
  // what is tested.
  static RemoteOptions patient(std::string url) {
    return {.url = std::move(url), .connect_timeout = 2s, .operation_timeout = 10s, .trouble_budget = 60s};
  }
  // The deadlines that a user gets.
  static RemoteOptions as_users(std::string url) { return {.url = std::move(url)}; }

  // Starts `count` new machines at once and waits for them; how long all of them took.
  Seconds run(int count, const RemoteOptions& remote) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
      Options options = compiler_.options(folder_ / std::to_string(++machines_));
      options.remote = remote;
      children.push_back(start([options] { return machine(options); }));
    }
    for (const pid_t child : children) CHECK(status_within(child, k_limit) == 0);
    return std::chrono::steady_clock::now() - begin;
  }

 private:
  const StubCompiler& compiler_;
  TempDir folder_;
  int machines_ = 0;
};

std::string url_of(std::uint16_t port) {
  return fmt::format("redis://127.0.0.1:{}", port);
}

// Against a server that is no help, every machine still comes to right results, within the time of its own
// compiles and the budget for trouble.
void check_without_help(const std::string& url) {
  const StubCompiler compiler(1ms);
  Fleet fleet(compiler);
  const RemoteOptions remote = Fleet::as_users(url);
  // Twice the time for a machine that is busy with other things meanwhile; what must not happen is that the
  // budget multiplies, by kernels or by machines.
  const Seconds alone = fleet.run(k_machines, {});
  const Seconds took = fleet.run(k_machines, remote);
  CHECK(compiler.runs() == 2 * k_machines * k_kernels);
  CHECK(took < alone * 2 + Seconds(remote.trouble_budget) + 1s);
}

}  // namespace

TEST_SUITE_BEGIN("fleet");

TEST_CASE(
    "After the first machine of a fleet has run, the other thirty-one compile nothing [nosan] [serial]") {
  if (!have_program("redis-server")) return report_skip("there is no redis-server");
  const RedisServer server;
  const StubCompiler compiler(20ms);
  Fleet fleet(compiler);
  const RemoteOptions remote = Fleet::patient(url_of(server.port()));
  fleet.run(1, remote);
  CHECK(compiler.runs() == k_kernels);
  fleet.run(k_machines - 1, remote);
  CHECK(compiler.runs() == k_kernels);
}

TEST_CASE("A fleet that starts cold and all at once ends with right results [nosan] [serial]") {
  if (!have_program("redis-server")) return report_skip("there is no redis-server");
  const RedisServer server;
  const StubCompiler compiler(20ms);
  Fleet fleet(compiler);
  fleet.run(k_machines, Fleet::patient(url_of(server.port())));
  CHECK(compiler.runs() >= k_kernels);
  CHECK(compiler.runs() < k_machines * k_kernels);  // some came later than another one's result
}

TEST_CASE("F39: A fleet whose server is dead from the start is as fast as without it [nosan] [serial]") {
  check_without_help(url_of(free_port()));
}

TEST_CASE(
    "F39: A fleet whose server accepts and never answers loses no more than the budget [nosan] [serial]") {
  const StubServer server([](Peer& peer) { peer.say_nothing(); });
  check_without_help(url_of(server.port()));
}

TEST_CASE(
    "F39: A fleet whose server answers late, but in time, loses no more than the budget [nosan] [serial]") {
  const StubServer server([](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      std::this_thread::sleep_for(400ms);
      peer.say(words.front() == "GET" ? "$-1\r\n" : "+OK\r\n");
    }
  });
  check_without_help(url_of(server.port()));
}

TEST_CASE("F39: A fleet whose server lies compiles for itself [nosan] [serial]") {
  const StubServer server([](Peer& peer) {
    while (!peer.command().empty()) peer.say("$5\r\nhello\r\n");
  });
  check_without_help(url_of(server.port()));
}

TEST_SUITE_END();

}  // namespace jitsmith
