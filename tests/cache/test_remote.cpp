// What the remote tier makes of a server's trouble, over time: pauses, budgets, modes. See
// test_remote_replies.cpp for what a server can send, and test_remote_redis.cpp for a real one.
#include "remote_bench.hpp"

#include <jitsmith/cache/redis_failure.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("Remote");

TEST_CASE("Without a URL there is no remote tier") {
  RemoteBench bench("");
  CHECK(make_remote({real_file_system(), bench.clock, bench.counters, bench.events}, {}) == nullptr);
}

TEST_CASE("A URL that cannot be used makes it off from the start, with the reason") {
  RemoteBench bench("redis://u:hunter2@h:x");
  CHECK(bench.state().configured);
  CHECK_FALSE(bench.state().usable);
  CHECK(holds(bench.state().reason, "the port"));
  CHECK_FALSE(bench.get());
  bench.put();
  CHECK_FALSE(bench.remote().ping());
  CHECK_FALSE(holds(bench.all_texts(), "hunter2"));
}

TEST_CASE("An entry is asked for by its digest, verified and returned") {
  RemoteBench bench("");
  std::vector<std::string> asked;
  {
    StubServer server([&](Peer& peer) {
      asked = peer.command();
      peer.say(bulk(encoded(bench.entry)));
      peer.say_nothing();
    });
    bench.options.url = fmt::format("redis://127.0.0.1:{}", server.port());
    CHECK(server.connections() == 0);
    CHECK(bench.state().usable);
    CHECK(bench.get() == bench.entry);
  }
  CHECK(asked == std::vector<std::string>{"GET", "jitsmith:v1:" + digest_of(bench.entry.key_text).hex()});
  CHECK(bench.told().empty());
  CHECK(bench.state().reason == "");
}

TEST_CASE("A put sends the encoded entry; one that is not fit to be stored is not sent") {
  RemoteBench bench("");
  std::vector<std::string> asked;
  {
    StubServer server([&](Peer& peer) {
      for (auto words = peer.command(); !words.empty(); words = peer.command()) {
        asked = std::move(words);
        peer.say("+OK\r\n");
      }
    });
    bench.options.url = fmt::format("redis://127.0.0.1:{}", server.port());
    Entry unfit = bench.entry;
    unfit.payload.clear();
    bench.put(unfit);
    CHECK(server.connections() == 0);
    bench.put();
  }
  CHECK(asked == std::vector<std::string>{"SET", "jitsmith:v1:" + digest_of(bench.entry.key_text).hex(),
                                          encoded(bench.entry)});
  CHECK(bench.stats().remote_written == 1);
}

TEST_CASE("A large entry comes and goes whole") {
  const Entry large = sample_entry("large\n", 5'000'000);
  std::string stored;
  StubServer server([&](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      if (words.front() == "SET") stored = words.back();
      peer.say(words.front() == "SET" ? "+OK\r\n" : bulk(stored));
    }
  });
  RemoteBench bench(server.port());
  bench.options.operation_timeout = 20s;
  bench.put(large);
  CHECK(bench.get(large) == large);
  CHECK(server.connections() == 1);
}

TEST_CASE("F39: A server that is down costs no budget, and is used as soon as it is there [fault]") {
  const std::uint16_t port = free_port();
  RemoteBench bench(port);
  for (int i = 0; i < 200; ++i) {
    CHECK_FALSE(bench.get());
    bench.pass_the_pause();
  }
  CHECK(bench.stats().remote_failed == 200);
  CHECK(bench.state().usable);
  CHECK(bench.told("remote.off") == 0);
  CHECK(holds(bench.told().front(), "remote.failed: the Redis server redis://127.0.0.1"));
  CHECK(holds(bench.told().front(), "cannot be reached (Connection refused)"));
  CHECK_FALSE(holds(bench.told().front(), "[warning]"));
}

TEST_CASE("F39: After trouble the server is left alone for the pause, then asked again [fault]") {
  StubServer server(answer_and_cut("-LOADING Redis is loading the dataset in memory\r\n"));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.get());
  bench.put();
  CHECK(bench.stats().remote_failed == 1);
  CHECK(bench.stats().remote_skipped == 2);
  CHECK(bench.state().usable);
  CHECK(holds(bench.state().reason, "is left alone for 1000 ms"));
  bench.pass_the_pause();
  CHECK(bench.state().reason == "");
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_failed == 2);
}

TEST_CASE("What an error reply means") {
  using F = RedisFault;
  using C = Consequence;
  const auto means = [](std::string_view text, F fault, C consequence) {
    CAPTURE(text);
    CHECK(fault_of_error_reply(text) == fault);
    CHECK(consequence_of(fault_of_error_reply(text)) == consequence);
  };
  means("NOAUTH Authentication required.", F::auth_needed, C::stop);
  means("DENIED Redis is running in protected mode", F::auth_needed, C::stop);
  means("WRONGPASS invalid username-password pair or user is disabled.", F::auth_refused, C::stop);
  means("ERR invalid password", F::auth_refused, C::stop);
  means("ERR Client sent AUTH, but no password is set", F::auth_refused, C::stop);
  means("ERR AUTH <password> called without any password configured", F::auth_refused, C::stop);
  means("NOPERM this user has no permissions to run the 'get' command", F::no_permission, C::stop);
  means("ERR DB index is out of range", F::bad_database, C::stop);
  means("MOVED 3999 127.0.0.1:6381", F::is_cluster, C::stop);
  means("ASK 3999 127.0.0.1:6381", F::is_cluster, C::stop);
  means("CLUSTERDOWN The cluster is down", F::is_cluster, C::stop);
  means("OOM command not allowed when used memory > 'maxmemory'.", F::full, C::pause_writes);
  means("MISCONF Redis is configured to save RDB snapshots", F::cannot_persist, C::pause_writes);
  means("READONLY You can't write against a read only replica.", F::is_replica, C::stop_writes);
  means("LOADING Redis is loading the dataset in memory", F::not_ready, C::wait);
  means("BUSY Redis is busy running a script.", F::not_ready, C::wait);
  means("TRYAGAIN Multiple keys request during rehashing of slot", F::not_ready, C::wait);
  means("MASTERDOWN Link with MASTER is down", F::not_ready, C::wait);
  means("ERR max number of clients reached", F::not_ready, C::wait);
  means("ERR unknown command", F::refused_command, C::wait);
  means("", F::refused_command, C::wait);
}

TEST_CASE("F39: A password that is refused switches the tier off, and is told to nobody [fault]") {
  // As bad as a server can be: it repeats what it was sent.
  StubServer server([](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      std::string all = "-ERR I do not like";
      for (const std::string& word : words) all += " " + word;
      peer.say(all + "\r\n");
    }
  });
  RemoteBench bench(fmt::format("redis://agent7:hunter2@127.0.0.1:{}/5", server.port()));
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.remote().ping());
  CHECK_FALSE(bench.state().usable);
  CHECK(holds(bench.state().reason, "refused the user and password"));
  CHECK(bench.told().size() == 1);
  CHECK(bench.told("remote.off") == 1);
  CHECK(holds(bench.told().front(), "[warning]"));
  CHECK(server.connections() == 1);
  CHECK(bench.stats().remote_skipped == 2);
  CHECK(holds(bench.all_texts(), "127.0.0.1"));
  for (const auto* secret : {"agent7", "hunter2"}) CHECK_FALSE(holds(bench.all_texts(), secret));
}

TEST_CASE("F39: Nothing is asked of a server before user and database are accepted [fault]") {
  std::vector<std::string> commands;
  {
    StubServer server([&](Peer& peer) {
      for (auto words = peer.command(); !words.empty(); words = peer.command()) {
        commands.push_back(words.front() + " " + words.back());
        peer.say(words.front() == "SELECT" ? "-ERR DB index is out of range\r\n" : "+OK\r\n");
      }
    });
    RemoteBench bench(fmt::format("redis://:pw@127.0.0.1:{}/99", server.port()));
    bench.put();
    CHECK_FALSE(bench.state().usable);
    CHECK(holds(bench.state().reason, "no such database"));
  }
  CHECK(commands == std::vector<std::string>{"AUTH pw", "SELECT 99"});
}

TEST_CASE("F39: A full server is only read for a minute [fault]") {
  std::atomic<bool> is_full = true;
  StubServer server([&](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command())
      peer.say(words.front() == "GET" ? "$-1\r\n"
               : is_full              ? "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
                                      : "+OK\r\n");
  });
  RemoteBench bench(server.port());
  bench.put();
  bench.put();
  CHECK(bench.stats().remote_failed == 1);
  CHECK(bench.stats().remote_skipped == 1);
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_skipped == 1);
  CHECK(bench.state().usable);
  CHECK(holds(bench.state().reason, "is out of memory"));
  CHECK(holds(bench.state().reason, "only read for 60 s"));
  is_full = false;
  bench.clock.advance(59s);
  bench.put();
  CHECK(bench.stats().remote_written == 0);
  bench.clock.advance(2s);
  bench.put();
  CHECK(bench.stats().remote_written == 1);
  CHECK(bench.state().reason == "");
  CHECK(server.connections() == 1);
}

TEST_CASE("F39: A replica, or a user who may not write, is read and no longer written [fault]") {
  for (const auto* error : {"-READONLY You can't write against a read only replica.\r\n",
                            "-NOPERM this user has no permissions to run the 'set' command\r\n"}) {
    StubServer server([&](Peer& peer) {
      for (auto words = peer.command(); !words.empty(); words = peer.command())
        peer.say(words.front() == "GET" ? bulk(encoded(sample_entry())) : error);
    });
    RemoteBench bench(server.port());
    bench.put();
    bench.clock.advance(std::chrono::hours(1));
    bench.put();
    CHECK(bench.stats().remote_failed == 1);
    CHECK(bench.stats().remote_skipped == 1);
    CHECK(bench.told("remote.read_only") == 1);
    CHECK(bench.get() == bench.entry);
    CHECK(bench.state().usable);
    CHECK(holds(bench.state().reason, "mode read_only"));
  }
}

TEST_CASE("F39: A cluster is refused with the reason [fault]") {
  StubServer server(answer("-MOVED 3999 10.0.0.1:6381\r\n"));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.state().usable);
  CHECK(holds(bench.state().reason, "cluster, which is not supported"));
}

TEST_CASE("F39: When the budget is used up the tier is off, once and for good, and costs nothing [fault]") {
  StubServer server(never_answer);
  RemoteBench bench(server.port());
  bench.options.operation_timeout = 100ms;
  bench.options.trouble_budget = 500ms;
  int tries = 0;
  for (; bench.state().usable && tries < 10; ++tries) {
    CHECK_FALSE(bench.get());
    bench.pass_the_pause();
  }
  CHECK(tries > 0);
  CHECK(tries <= 3);  // of 200 ms each
  CHECK(holds(bench.state().reason, "took 500 ms"));
  CHECK(bench.told("remote.failed") == tries - 1);
  CHECK(bench.told("remote.off") == 1);
  bench.clock.advance(std::chrono::hours(24));
  CHECK(time_of([&] {
          for (int i = 0; i < 1000; ++i) {
            bench.get();
            bench.put();
          }
        }) < 500ms);
  CHECK(bench.stats().remote_skipped == 2000);
  CHECK(bench.told("remote.off") == 1);
}

TEST_CASE(
    "F39: Many threads before a server that never answers are all through after one deadline [fault] "
    "[tsan]") {
  StubServer server(never_answer);
  RemoteBench bench(server.port());
  bench.remote();
  std::vector<std::thread> threads;
  const auto taken = time_of([&] {
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        bench.get();
        bench.put();
      });
    }
    for (auto& thread : threads) thread.join();
  });
  CHECK(taken < 600ms + k_slack);
  CHECK(bench.stats().remote_failed == 1);
  CHECK(bench.stats().remote_skipped == 31);
}

TEST_CASE("F39: A thread does not wait longer for its turn than for the server [fault]") {
  // Served, but slowly: nothing fails, so nothing closes the gate.
  StubServer server([](Peer& peer) {
    while (!peer.command().empty()) {
      std::this_thread::sleep_for(300ms);
      peer.say("$-1\r\n");
    }
  });
  RemoteBench bench(server.port());
  bench.options.operation_timeout = 400ms;
  bench.remote();
  std::vector<std::thread> threads;
  const auto taken = time_of([&] {
    for (int i = 0; i < 12; ++i) threads.emplace_back([&] { bench.get(); });
    for (auto& thread : threads) thread.join();
  });
  CHECK(taken < 3000ms);  // twelve turns would take 3600
  CHECK(bench.stats().remote_skipped >= 1);
}

TEST_CASE("F39: In the mode read_only nothing is written [fault]") {
  std::atomic<int> sets = 0;
  StubServer server([&](Peer& peer) {
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      if (words.front() != "GET") ++sets;
      peer.say("$-1\r\n");
    }
  });
  RemoteBench bench(server.port());
  bench.options.mode = RemoteMode::read_only;
  bench.put();
  CHECK(server.connections() == 0);
  CHECK_FALSE(bench.get());
  bench.put();
  CHECK(sets == 0);
  CHECK(bench.stats().remote_written == 0);
}

TEST_CASE("F39: A name that nobody knows comes back within the deadline of connecting [fault]") {
  RemoteBench bench(std::string("redis://no-such-host.invalid"));
  const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
  CHECK(taken < 100ms + k_slack);
  CHECK(bench.stats().remote_failed == 1);
  CHECK((holds(bench.state().reason, "has no address") ||
         holds(bench.state().reason, "was not found in time")));
}

TEST_CASE("A name is looked up") {
  StubServer server(answer("+PONG\r\n"));
  RemoteBench bench(fmt::format("redis://localhost:{}", server.port()));
  bench.options.connect_timeout = 5s;
  CHECK(bench.remote().ping());
}

TEST_CASE("Ping asks in a pause as well, and a server that answers is used again") {
  std::atomic<bool> is_ready = false;
  StubServer server([&](Peer& peer) {
    while (!peer.command().empty()) peer.say(is_ready ? "+PONG\r\n" : "-LOADING it\r\n");
  });
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.remote().ping());
  CHECK(holds(bench.state().reason, "not ready"));
  is_ready = true;
  CHECK(bench.remote().ping());
  CHECK(bench.state().reason == "");
}

TEST_CASE("Its socket is not inherited by programs that are started") {
  StubServer server(answer("$-1\r\n"));
  RemoteBench bench(server.port());
  bench.get();
  int sockets = 0, inheritable = 0;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
        ntohs(peer.sin_port) != server.port())
      continue;
    ++sockets;
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++inheritable;
  }
  CHECK(sockets == 1);
  CHECK(inheritable == 0);
}

TEST_SUITE_END();
