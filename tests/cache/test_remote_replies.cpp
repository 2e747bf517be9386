// The remote tier against a server that answers in every wrong way that a script can: late, in part, too
// much, something else, or not at all.
#include "remote_bench.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <thread>

using namespace jitsmith;
using namespace jitsmith::test;
using namespace std::chrono_literals;

namespace {

std::size_t peak_virtual_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t value = 0; word == "VmPeak:" && status >> value) return value;
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("Remote");

TEST_CASE("F39: A server that accepts and never answers costs one deadline [fault]") {
  StubServer server(never_answer);
  RemoteBench bench(server.port());
  const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
  CHECK(taken >= 450ms);
  CHECK(taken < 500ms + k_slack);
  CHECK(bench.stats().remote_failed == 1);
  CHECK(holds(bench.state().reason, "took longer to answer"));
}

TEST_CASE("F39: A server that lets nobody in costs the deadline of connecting [fault]") {
  // With its backlog full, the kernel drops what comes: as a firewall that swallows packets.
  const ListeningSocket listening(0);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listening.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(fillers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  RemoteBench bench(listening.port());
  const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
  for (const int filler : fillers) ::close(filler);
  CHECK(taken < 100ms + k_slack);
  CHECK(holds(bench.state().reason, "took longer to connect"));
}

TEST_CASE("F39: Bytes that dribble in do not extend the deadline [fault]") {
  StubServer server([](Peer& peer) {
    peer.command();
    peer.say("$1000\r\n");
    peer.dribble(20ms);
  });
  RemoteBench bench(server.port());
  bench.options.operation_timeout = 200ms;
  const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
  CHECK(taken >= 150ms);
  CHECK(taken < 200ms + k_slack);
  CHECK(holds(bench.state().reason, "took longer to answer"));
}

TEST_CASE("F39: A reply that is cut off at any place is a miss [fault]") {
  const std::string whole = bulk(encoded(sample_entry()));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{20},
                                 whole.size() - 2, whole.size() - 1}) {
    CAPTURE(size);
    StubServer server(answer_and_cut(whole.substr(0, size)));
    RemoteBench bench(server.port());
    CHECK_FALSE(bench.get());
    CHECK(bench.stats().remote_failed == 1);
    CHECK(bench.stats().remote_corrupt == 0);
  }
}

TEST_CASE("F39: Writing to a connection that the server has cut does not kill the program [fault]") {
  // The server says that it is done and cuts the connection while more is being sent than its buffers hold:
  // the next write raises SIGPIPE.
  StubServer server([](Peer& peer) {
    peer.stop_talking();
    std::this_thread::sleep_for(100ms);
  });
  const int result = in_child([&] {
    ::signal(SIGPIPE, SIG_DFL);
    RemoteBench bench(server.port());
    bench.options.operation_timeout = 5s;
    bench.put(sample_entry("large\n", 40'000'000));
    sigset_t pending, blocked;
    ::sigpending(&pending);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const bool is_clean = !sigismember(&pending, SIGPIPE) && !sigismember(&blocked, SIGPIPE);
    return bench.stats().remote_failed == 1 && is_clean ? 0 : 1;
  });
  CHECK(result == 0);
}

TEST_CASE("F39: A SIGPIPE that was pending before stays pending [fault]") {
  StubServer server(answer("$-1\r\n"));
  const int result = in_child([&] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    ::raise(SIGPIPE);
    RemoteBench bench(server.port());
    bench.get();
    sigset_t pending;
    ::sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1 && bench.stats().remote_failed == 0 ? 0 : 1;
  });
  CHECK(result == 0);
}

TEST_CASE("F39: An empty body is damage [fault]") {
  StubServer server(answer("$0\r\n\r\n"));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_corrupt == 1);
  CHECK(bench.stats().remote_failed == 0);
  CHECK(bench.told("remote.corrupt") == 1);
}

TEST_CASE("F39: Wrong bytes and another key's entry are damage, and writing over them goes on [fault]") {
  const Entry entry = sample_entry(), other = sample_entry("another key\n");
  std::string flipped = encoded(entry);
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string& body :
       {std::string("not an entry"), flipped, encoded(other), encoded(entry) + "x", std::string(100, '\0')}) {
    StubServer server([&](Peer& peer) {
      for (auto words = peer.command(); !words.empty(); words = peer.command())
        peer.say(words.front() == "SET" ? "+OK\r\n" : bulk(body));
    });
    RemoteBench bench(server.port());
    CHECK_FALSE(bench.get());
    CHECK(bench.stats().remote_corrupt == 1);
    bench.put();
    CHECK(bench.stats().remote_written == 1);
    CHECK(bench.stats().remote_failed == 0);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("F39: A value of another type is damage [fault]") {
  StubServer server(answer("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_corrupt == 1);
  CHECK(bench.stats().remote_skipped == 0);
  CHECK(bench.state().reason == "");
}

TEST_CASE("An entry of a later version of jitsmith is a plain miss") {
  std::string newer = encoded(sample_entry());
  newer[8] = 2;
  StubServer server(answer(bulk(newer)));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_corrupt == 0);
  CHECK(bench.told().empty());
}

TEST_CASE("F39: A body beyond the limit is refused when it is announced [fault]") {
  for (const auto* announcement : {"$1073741824\r\n", "$67108865\r\n", "$99999999999999999999999\r\n"}) {
    StubServer server([&](Peer& peer) {
      peer.command();
      peer.say(announcement);
      peer.say_nothing();
    });
    RemoteBench bench(server.port());
    bench.options.operation_timeout = 10s;
    CHECK(time_of([&] { CHECK_FALSE(bench.get()); }) < k_slack);
    CHECK(bench.stats().remote_failed == 1);
    CHECK(holds(bench.state().reason, "64 MiB"));
  }
}

TEST_CASE("F39: Replies of a kind that nobody asked for are refused, without memory for them [fault]") {
  const std::size_t before = peak_virtual_kib();
  for (const auto* reply : {"*1000000000\r\n",
                            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
                            "*1\r\n*1000000000\r\n",
                            "*0\r\n",
                            "*-1\r\n",
                            "%1000000000\r\n",
                            "~1000000000\r\n",
                            ">1000000000\r\n",
                            "|1\r\n+a\r\n+b\r\n$-1\r\n",
                            ":1\r\n",
                            ",1.5\r\n",
                            "#t\r\n",
                            "(12345678901234567890\r\n",
                            "=7\r\ntxt:abc\r\n",
                            "+OK\r\n",
                            "$x\r\n",
                            "$-2\r\n",
                            "HTTP/1.1 400 Bad Request\r\n\r\n",
                            "\r\n",
                            "\x16\x03\x01\x02\n"}) {
    CAPTURE(reply);
    StubServer server([&](Peer& peer) {
      peer.command();
      peer.say(reply);
      peer.say_nothing();
    });
    RemoteBench bench(server.port());
    bench.options.operation_timeout = 10s;
    const auto taken = time_of([&] { CHECK_FALSE(bench.get()); });
    // An absent array is hiredis's nil, too.
    if (std::string_view(reply) != "*-1\r\n") {
      CHECK(bench.stats().remote_failed == 1);
      CHECK(holds(bench.state().reason, "no reply to the command"));
    }
    CHECK(taken < k_slack);
  }
  CHECK(peak_virtual_kib() < before + (std::size_t{1} << 20));
}

TEST_CASE("F39: A line without an end is refused [fault]") {
  StubServer server([](Peer& peer) {
    peer.command();
    peer.say(std::string(100'000, '+'));
    peer.say_nothing();
  });
  RemoteBench bench(server.port());
  bench.options.operation_timeout = 10s;
  CHECK(time_of([&] { CHECK_FALSE(bench.get()); }) < k_slack);
  CHECK(bench.stats().remote_failed == 1);
}

TEST_CASE("F39: A reply that nobody asked for is not taken for the next answer [fault]") {
  const Entry first = sample_entry("first\n"), second = sample_entry("second\n");
  StubServer server([&](Peer& peer) {
    while (!peer.command().empty()) peer.say(bulk(encoded(first)) + bulk(encoded(first)));
  });
  RemoteBench bench(server.port());
  CHECK(bench.get(first) == first);
  CHECK(bench.get(first) == first);
  CHECK(server.connections() == 2);
  CHECK(bench.stats().remote_failed == 0);
}

TEST_CASE("F39: After an answer to another question the connection is not used again [fault]") {
  StubServer server(answer("+OK\r\n"));
  RemoteBench bench(server.port());
  CHECK_FALSE(bench.get());
  bench.pass_the_pause();
  CHECK_FALSE(bench.get());
  CHECK(bench.stats().remote_failed == 2);
  CHECK(server.connections() == 2);
}

TEST_CASE("F39: A connection that the server has closed meanwhile is opened again at once [fault]") {
  StubServer server(answer_and_cut(bulk(encoded(sample_entry()))));
  RemoteBench bench(server.port());
  for (int i = 0; i < 3; ++i) {
    CHECK(bench.get() == bench.entry);
    std::this_thread::sleep_for(20ms);  // the server's close is on its way
  }
  CHECK(server.connections() == 3);
  CHECK(bench.stats().remote_failed == 0);
}

TEST_SUITE_END();
