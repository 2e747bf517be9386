#include <jitsmith/cache/usage.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace jitsmith;
using Due = UsageEstimate::Due;

TEST_SUITE_BEGIN("Usage");

TEST_CASE("F36: A trim goes to 80 % of the limit that is exceeded, and leaves the other alone") {
  const CacheLimits limits{1000, 10};
  CHECK(trim_goal({1000, 10}, limits) == Usage{1000, 10});
  CHECK(trim_goal({1001, 10}, limits) == Usage{800, 10});
  CHECK(trim_goal({900, 11}, limits) == Usage{900, 8});
  CHECK(trim_goal({5000, 11}, limits) == Usage{800, 8});
  CHECK(trim_goal({5000, 11}, {0, 0}) == Usage{5000, 11});
  CHECK(room_goal({1000, 7}, 100) == Usage{800, 5});
  CHECK(room_goal({10'000, 700}, 100) == Usage{9200, 692});
  CHECK(room_goal({1, 1}, 100) == Usage{0, 0});
}

TEST_CASE("F38: An estimate does not go below zero") {
  CHECK(Usage{5, 1} - Usage{7, 3} == Usage{0, 0});
  CHECK(Usage{5, 3} - Usage{2, 1} == Usage{3, 2});
}

TEST_CASE("The first put asks for a scan, the next ones do not") {
  UsageEstimate estimate({1 << 20, 1000});
  CHECK(estimate.note_put(100) == Due::scan);
  CHECK(estimate.note_put(100) == Due::scan);  // until it is done
  estimate.reseed({8192, 2});
  CHECK(estimate.due() == Due::nothing);
  CHECK(estimate.note_put(100) == Due::nothing);
  CHECK(estimate.now() == Usage{8192 + 4096, 3});
  estimate.forget();
  CHECK(estimate.due() == Due::scan);
}

TEST_CASE("Without limits nothing is ever asked for") {
  UsageEstimate estimate({0, 0});
  for (int i = 0; i < 100; ++i) CHECK(estimate.note_put(1 << 30) == Due::nothing);
}

TEST_CASE("A put over either limit asks for a trim, and not again when that did not help") {
  UsageEstimate estimate({1 << 20, 640});
  SUBCASE("bytes") {
    estimate.reseed({1 << 20, 1});
  }
  SUBCASE("entries") {
    estimate.reseed({1, 640});
  }
  CHECK(estimate.note_put(100) == Due::trim);
  CHECK(estimate.note_put(100) == Due::trim);  // another process was at it
  estimate.reseed({(1 << 20) + 4096, 641});    // all of it is young
  for (int i = 0; i < 4; ++i) CHECK(estimate.note_put(100) == Due::nothing);
  Due due = Due::nothing;
  for (int i = 0; i < 10; ++i) due = estimate.note_put(100);  // more than 1/64 of a limit
  CHECK(due == Due::trim);
}

TEST_CASE("Own puts of 1/16 of a limit ask for a scan, near the limit 1/64 do") {
  const auto puts_to_scan = [](const Usage& found, std::uint64_t size) {
    UsageEstimate estimate({64 << 20, 6400});
    estimate.reseed(found);
    int puts = 1;
    while (estimate.note_put(size) == Due::nothing) ++puts;
    CHECK(estimate.due() == Due::scan);
    return puts;
  };
  CHECK(puts_to_scan({0, 0}, 1 << 20) == 5);         // more than 4 MiB
  CHECK(puts_to_scan({0, 0}, 1) == 401);             // more than 400 entries
  CHECK(puts_to_scan({60 << 20, 0}, 1 << 18) <= 5);  // more than 1 MiB
  CHECK(puts_to_scan({0, 6000}, 1) == 101);          // more than 100 entries
}

TEST_SUITE_END();
