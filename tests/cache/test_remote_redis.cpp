// The remote tier on a real Redis server, which each case starts and ends.
#include "../support/redis_server.hpp"
#include "../support/skip.hpp"
#include "remote_bench.hpp"

#include <jitsmith/cache/redis_tls.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
using namespace std::chrono_literals;

namespace {

bool have_redis() {
  if (have_program("redis-server")) return true;
  report_skip("redis-server is not installed");
  return false;
}

// With the deadlines of a machine that does other things as well: what is looked for here is not a delay.
struct Bench : RemoteBench {
  explicit Bench(const RedisServer& server, const std::string& credentials = "",
                 const std::string& database = "")
      : RemoteBench(fmt::format("redis://{}127.0.0.1:{}{}", credentials, server.port(), database)) {
    options.connect_timeout = 5s;
    options.operation_timeout = 10s;
  }
};

Entry numbered_entry(int number) {
  Entry entry = sample_entry(fmt::format("number={}\n", number), 3000);
  entry.payload.back() = static_cast<std::byte>(number);
  return entry;
}

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST_SUITE_BEGIN("Remote");

TEST_CASE("What one process puts another gets") {
  if (!have_redis()) return;
  RedisServer server;
  const Entry large = sample_entry("large\n", 3'000'000);
  Bench writer(server), reader(server);
  CHECK_FALSE(reader.get());
  writer.put();
  writer.put(large);
  CHECK(writer.stats().remote_written == 2);
  CHECK(reader.get() == reader.entry);
  CHECK(reader.get(large) == large);
  CHECK(reader.remote().ping());
  CHECK(holds(server.ask("KEYS *"), "jitsmith:v1:" + digest_of(reader.entry.key_text).hex()));
  CHECK(reader.told().empty());
}

TEST_CASE("F39: A password is needed: without, wrong and right [fault]") {
  if (!have_redis()) return;
  RedisServer server({"--requirepass", "hunter2"});
  Bench without(server);
  CHECK_FALSE(without.get());
  CHECK_FALSE(without.state().usable);
  CHECK(holds(without.state().reason, "asks for a password"));

  Bench wrong(server, ":hunter3@");
  wrong.put();
  CHECK_FALSE(wrong.state().usable);
  CHECK(wrong.told("remote.off") == 1);
  CHECK(holds(wrong.state().reason, "refused the user and password"));
  CHECK_FALSE(holds(wrong.all_texts(), "hunter3"));

  Bench right(server, ":hunter2@");
  right.put();
  CHECK(right.get() == right.entry);
  CHECK(right.told().empty());
  CHECK_FALSE(holds(right.all_texts(), "hunter2"));
}

TEST_CASE("F39: A password where none is set is refused, not ignored [fault]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench bench(server, ":hunter2@");
  CHECK_FALSE(bench.get());
  CHECK(holds(bench.state().reason, "refused the user and password"));
}

TEST_CASE("F39: An ACL user has what its rules allow [fault]") {
  if (!have_redis()) return;
  RedisServer server;
  CHECK(holds(server.ask("ACL SETUSER full on >p%w ~jitsmith:* +get +set +ping"), "+OK"));
  CHECK(holds(server.ask("ACL SETUSER reader on >pw ~jitsmith:* +get"), "+OK"));
  CHECK(holds(server.ask("ACL SETUSER stranger on >pw ~other:* +get +set"), "+OK"));
  Bench full(server, "full:p%25w@");
  full.put();
  CHECK(full.get() == full.entry);
  CHECK(full.remote().ping());
  CHECK(full.told().empty());

  Bench reader(server, "reader:pw@");
  reader.put();
  CHECK(reader.get() == reader.entry);
  CHECK(reader.state().usable);
  CHECK(holds(reader.state().reason, "does not let this user write"));

  Bench stranger(server, "stranger:pw@");
  CHECK_FALSE(stranger.get());
  CHECK_FALSE(stranger.state().usable);
  CHECK(holds(stranger.state().reason, "does not let this user read"));
}

TEST_CASE("F39: Databases are kept apart, and one that is not there switches the tier off [fault]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench third(server, "", "/3"), first(server, "", "/0"), none(server, "", "/99");
  third.put();
  CHECK(third.get() == third.entry);
  CHECK_FALSE(first.get());
  none.put();
  CHECK_FALSE(none.state().usable);
  CHECK(holds(none.state().reason, "no such database"));
  CHECK(holds(server.ask("DBSIZE"), ":0"));
}

TEST_CASE("F39: A server that is full takes no entries, and takes them again when there is room [fault]") {
  if (!have_redis()) return;
  RedisServer server({"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"});
  Bench bench(server);
  bench.put();
  int number = 0;
  while (bench.stats().remote_failed == 0 && number < 100)
    bench.put(sample_entry(fmt::format("{}\n", number++), 200'000));
  CHECK(bench.stats().remote_failed == 1);
  CHECK(bench.state().usable);
  CHECK(holds(bench.state().reason, "is out of memory"));
  CHECK(bench.get() == bench.entry);
  CHECK(holds(server.ask("FLUSHALL"), "+OK"));
  const auto written = bench.stats().remote_written;
  bench.put();
  CHECK(bench.stats().remote_written == written);
  bench.clock.advance(61s);
  bench.put();
  CHECK(bench.stats().remote_written == written + 1);
  CHECK(bench.get() == bench.entry);
}

TEST_CASE("F39: A server that is restarted under load is used again [fault] [tsan]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench bench(server);
  bench.options.pause = 10ms;
  const Clock real_clock;
  bench.clock_used = &real_clock;
  bench.remote();
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0, found = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = thread; !stop; ++round) {
        const Entry entry = numbered_entry(round % 20);
        bench.put(entry);
        const auto got = bench.get(entry);
        if (got && *got != entry) ++wrong;
        if (got) ++found;
      }
    });
  }
  const auto wait_for_hits = [&] {
    const int before = found;
    for (int i = 0; i < 2000 && found < before + 20; ++i) std::this_thread::sleep_for(5ms);
    return found >= before + 20;
  };
  CHECK(wait_for_hits());
  for (int restart = 0; restart < 3; ++restart) {
    server.kill();
    std::this_thread::sleep_for(20ms);
    CHECK(server.start());
    CHECK(wait_for_hits());
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(bench.stats().remote_corrupt == 0);
  CHECK(bench.state().usable);
}

TEST_CASE("F39: A server that is stopped costs a deadline, and is used again when it goes on [fault]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench bench(server);
  bench.options.operation_timeout = 300ms;
  bench.options.trouble_budget = 20s;
  bench.put();
  server.stall();
  const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
  CHECK(taken >= 250ms);
  CHECK(taken < 2s);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_failed == 1);
  CHECK(bench.stats().remote_skipped == 1);
  server.go_on();
  // It may take a moment to catch up; each try that finds it not ready yet is followed by a pause.
  std::optional<Entry> got;
  for (int i = 0; i < 20 && !got; ++i) {
    bench.pass_the_pause();
    got = bench.get();
  }
  CHECK(got == bench.entry);
}

TEST_CASE("F39: After a fork both go on, each with a connection of its own [fault]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench bench(server);
  bench.put();
  CHECK(holds(server.ask("INFO clients"), "connected_clients:2"));
  const pid_t child = ::fork();
  if (child == 0) {
    // While the parent asks on its own connection, for other entries.
    int wrong = 0;
    for (int i = 0; i < 50; ++i) {
      bench.put(numbered_entry(i));
      wrong += bench.get(numbered_entry(i)) == numbered_entry(i) ? 0 : 1;
    }
    const bool two_more = holds(server.ask("INFO clients"), "connected_clients:3");
    ::_exit(wrong == 0 && two_more && bench.stats().remote_failed == 0 ? 0 : 1);
  }
  int wrong = 0;
  for (int i = 100; i < 150; ++i) {
    bench.put(numbered_entry(i));
    wrong += bench.get(numbered_entry(i)) == numbered_entry(i) ? 0 : 1;
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(wrong == 0);
  CHECK(bench.get() == bench.entry);
  CHECK(bench.stats().remote_failed == 0);
}

TEST_CASE("F39: A child that is forked while another thread is in an operation goes on [fault] [nosan]") {
  if (!have_redis()) return;
  RedisServer server;
  Bench bench(server);
  bench.put();
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) bench.get();
  });
  int good = 0;
  for (int i = 0; i < 20; ++i)
    good += in_child([&] { return bench.get() == bench.entry ? 0 : 1; }) == 0 ? 1 : 0;
  stop = true;
  busy.join();
  CHECK(good == 20);
  CHECK(bench.get() == bench.entry);
  CHECK(bench.stats().remote_failed == 0);
}

TEST_CASE("F39: Over TLS the certificate must be trusted, and for the host [fault]") {
  if (!have_redis()) return;
  if (!has_redis_tls()) {
    report_skip("this build has no TLS for Redis: hiredis_ssl was not found");
    return;
  }
  if (!have_program("openssl")) {
    report_skip("openssl, which makes the certificates, is not installed");
    return;
  }
  const TempDir temp;
  const std::string key = temp / "key.pem", certificate = temp / "certificate.pem";
  REQUIRE(
      run(fmt::format("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                      "-subj /CN=test -addext subjectAltName=DNS:localhost -keyout {} -out {}",
                      key, certificate)));
  RedisServer server(
      {"--port", "0", "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file",
       certificate, "--tls-auth-clients", "no", "--requirepass", "hunter2"},
      "--tls-port");
  const auto bench_for = [&](std::string_view host) {
    auto bench = std::make_unique<RemoteBench>(fmt::format("rediss://:hunter2@{}:{}/2", host, server.port()));
    bench->options.connect_timeout = 5s;
    bench->options.operation_timeout = 10s;
    return bench;
  };
  const auto untrusted = bench_for("localhost");
  CHECK_FALSE(untrusted->get());
  CHECK_FALSE(untrusted->state().usable);
  CHECK(holds(untrusted->state().reason, "certificate that is not trusted"));

  // OpenSSL's own way to name another store.
  ::setenv("SSL_CERT_FILE", certificate.c_str(), 1);
  const Entry large = sample_entry("large\n", 3'000'000);
  const auto right = bench_for("localhost");
  right->put();
  right->put(large);
  CHECK(right->get() == right->entry);
  CHECK(right->get(large) == large);
  CHECK(right->remote().ping());
  CHECK(right->told().empty());
  CHECK(right->state().endpoint == fmt::format("rediss://localhost:{}/2", server.port()));

  const auto other_host = bench_for("127.0.0.1");
  CHECK_FALSE(other_host->get());
  CHECK_FALSE(other_host->state().usable);
  CHECK(holds(other_host->state().reason, "certificate that is not trusted"));

  Bench plain(server);
  plain.options.operation_timeout = 500ms;
  CHECK_FALSE(plain.get());
  CHECK(plain.stats().remote_failed == 1);

  server.kill();
  REQUIRE(server.start());
  CHECK_FALSE(right->get());  // it lost all, and is asked over a new connection
  CHECK(right->stats().remote_failed == 0);
  ::unsetenv("SSL_CERT_FILE");
}

TEST_CASE("F39: TLS with a server that does not speak it, or says nothing, fails in time [fault]") {
  if (!has_redis_tls()) {
    report_skip("this build has no TLS for Redis: hiredis_ssl was not found");
    return;
  }
  StubServer silent([](Peer& peer) { peer.say_nothing(); });
  RemoteBench bench(fmt::format("rediss://127.0.0.1:{}", silent.port()));
  CHECK(time_of([&] { CHECK_FALSE(bench.get()); }) < 2s);
  CHECK(holds(bench.state().reason, "took longer to answer"));

  StubServer plain([](Peer& peer) {
    peer.say("-ERR Protocol error\r\n");
    peer.say_nothing();
  });
  RemoteBench other(fmt::format("rediss://127.0.0.1:{}", plain.port()));
  CHECK_FALSE(other.get());
  CHECK(other.state().usable);
  CHECK(holds(other.state().reason, "did not agree on TLS"));
}

TEST_CASE("TLS that the build does not have is refused with the reason") {
  if (has_redis_tls()) return;
  RemoteBench bench(std::string("rediss://u:hunter2@cache.example"));
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.state().usable);
  CHECK(holds(bench.state().reason, "no TLS for Redis (hiredis_ssl)"));
  CHECK(bench.state().endpoint == "rediss://cache.example:6379/0");
  CHECK_FALSE(holds(bench.all_texts(), "hunter2"));
}

TEST_SUITE_END();
