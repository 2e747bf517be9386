#include "remote_bench.hpp"

#include <doctest/doctest.h>

using namespace jitsmith;
using namespace jitsmith::test;

TEST_SUITE_BEGIN("Remote");

TEST_CASE("A build without Redis says so, and neither finds nor stores") {
  RemoteBench bench("redis://u:hunter2@cache.example/3");
  bench.put();
  CHECK_FALSE(bench.get());
  CHECK_FALSE(bench.remote().ping());
  CHECK(bench.state().configured);
  CHECK_FALSE(bench.state().usable);
  CHECK(bench.state().endpoint == "redis://cache.example:6379/3");
  CHECK(holds(bench.state().reason, "this build has no Redis support (hiredis)"));
  CHECK_FALSE(holds(bench.all_texts(), "hunter2"));
}

TEST_SUITE_END();
