#include <jitsmith/runtime/census.hpp>

#include <doctest/doctest.h>

#include "support/message_of.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

std::string spell(const std::string& name, const std::string& value) {
  return name + "[" + std::to_string(value.size()) + "]=" + value + "\n";
}

struct Parts {
  std::string path = "mine/k.cu", target = "cuda sm_90a", threads = "64", toolchain = "nvrtc one";

  std::string text() const {
    return spell("template", path) + spell("parameter.threads", "int " + threads) +
           spell("instantiation", "k<" + threads + ">") + spell("target", target) +
           spell("option.0", "--gpu-architecture=" + target.substr(5)) + spell("toolchain", toolchain);
  }
};

Cache cache_in(const std::string& directory) {
  CacheOptions options;
  options.directory.explicit_dir = directory;
  return Cache(std::move(options));
}

}  // namespace

TEST_SUITE_BEGIN("Census");

TEST_CASE("Toolchains come by how much they made, those of the other executor not at all") {
  Census census;
  census.add(Parts{.toolchain = "rare"}.text(), Tier::directory);
  for (const char* threads : {"32", "64", "96"})
    census.add(Parts{.threads = threads, .toolchain = "usual"}.text(), Tier::bundle);
  census.add(Parts{.target = "host host", .toolchain = "gcc"}.text(), Tier::directory);
  CHECK(census.toolchains(Executor::cuda) == std::vector<std::string>{"usual", "rare"});
  CHECK(census.toolchains(Executor::host) == std::vector<std::string>{"gcc"});
  CHECK(census.archs_of("mine/k.cu") == Census::Counts{{"host", 1}, {"sm_90a", 4}});
  CHECK(census.archs_of("other.cu").empty());
}

TEST_CASE("An entry that is in several tiers counts once, in the first") {
  Census census;
  census.add(Parts{}.text(), Tier::directory);
  census.add(Parts{}.text(), Tier::bundle);
  CHECK(census.size() == 1);
  CHECK(census.nearest(key_fields(Parts{}.text()))->tier == Tier::directory);
}

TEST_CASE("The nearest entry differs in the least that matters: toolchain, parameters, target, template") {
  const std::string wanted = Parts{}.text();
  const KeyFields fields = key_fields(wanted);
  Census census;
  CHECK_FALSE(census.nearest(fields));
  const auto nearest = [&] { return describe(census.nearest(fields)->differences); };
  census.add(Parts{.path = "mine/other.cu"}.text(), Tier::directory);
  CHECK(nearest() == "template (mine/other.cu, not mine/k.cu)");
  census.add(Parts{.target = "cuda sm_80", .threads = "128"}.text(), Tier::directory);
  CHECK(nearest() == "parameter.threads (128, not 64) and target (cuda sm_80, not cuda sm_90a)");
  census.add(Parts{.target = "cuda sm_80"}.text(), Tier::directory);
  CHECK(nearest() == "target (cuda sm_80, not cuda sm_90a)");
  census.add(Parts{.threads = "128", .toolchain = "nvrtc two"}.text(), Tier::directory);
  CHECK(nearest() == "parameter.threads (128, not 64) and toolchain");
  census.add(Parts{.toolchain = "nvrtc two"}.text(), Tier::directory);
  CHECK(nearest() == "toolchain");
  census.add(wanted, Tier::bundle);
  CHECK(census.nearest(fields)->differences.empty());
}

TEST_CASE("What is held is said in numbers, with what differs") {
  const TempDir directory;
  const Cache cache = cache_in(directory / "c");
  const std::string wanted = Parts{.target = "cuda sm_100a", .threads = "32"}.text();
  const KeyFields fields = key_fields(wanted);
  Census census;
  CHECK(describe_holdings(census, cache, fields) == "the cache holds no kernel");
  census.add(Parts{.path = "mine/other.cu"}.text(), Tier::directory);
  CHECK(describe_holdings(census, cache, fields) ==
        "the cache holds 1 kernel, none of them of this template");
  for (const char* threads : {"64", "128"}) census.add(Parts{.threads = threads}.text(), Tier::directory);
  CHECK(describe_holdings(census, cache, fields) ==
        "the cache holds 2 kernels of this template for sm_90a and none for sm_100a; the nearest differs in "
        "parameter.threads (64, not 32) and target (cuda sm_90a, not cuda sm_100a)");
  census.add(Parts{.target = "cuda sm_100a"}.text(), Tier::directory);
  CHECK(contains(describe_holdings(census, cache, fields),
                 "the cache holds 1 kernel of this template for sm_100a and 2 for sm_90a; the nearest"));
}

TEST_CASE("Without a directory or a bundle in use the reason is said") {
  CHECK(contains(describe_holdings(Census(), cache_in("/dev/null/cache"), {}),
                 "there is nothing to take it from (the cache directory is not used: "));
  CacheOptions options;
  options.directory.enabled = false;
  options.directory.disabled_reason = "off it is";
  options.bundles = {"/nonexistent/bundle.jsb"};
  const std::string text = describe_holdings(Census(), Cache(std::move(options)), {});
  CHECK(contains(text, "off it is"));
  CHECK(contains(text, "bundle /nonexistent/bundle.jsb is not used: "));
}

TEST_CASE(
    "Beyond those that are compared all are counted and found, and the comparison says of how many it is") {
  const TempDir directory;
  const Cache cache = cache_in(directory / "c");
  Census census;
  for (std::size_t i = 0; i < Census::k_most_compared; ++i)
    census.add(Parts{.threads = std::to_string(i)}.text(), Tier::directory);
  const std::string wanted = Parts{.target = "cuda sm_80", .toolchain = "nvrtc two"}.text();
  CHECK(contains(describe_holdings(census, cache, key_fields(wanted)), "; the nearest differs in target"));
  census.add(Parts{.path = "mine/last.cu", .target = "host host", .toolchain = "gcc"}.text(),
             Tier::directory);
  census.add(wanted, Tier::bundle);
  census.add(wanted, Tier::directory);

  CHECK(census.size() == Census::k_most_compared + 2);
  CHECK(census.find(digest_of(wanted)) == Tier::bundle);
  CHECK_FALSE(census.find(digest_of(Parts{.threads = "none"}.text())));
  CHECK(census.toolchains(Executor::cuda) == std::vector<std::string>{"nvrtc one", "nvrtc two"});
  CHECK(census.toolchains(Executor::host) == std::vector<std::string>{"gcc"});
  CHECK(census.archs_of("mine/last.cu") == Census::Counts{{"host", 1}});
  CHECK(
      contains(describe_holdings(census, cache, key_fields(wanted)),
               "1 kernel of this template for sm_80 and 65536 for sm_90a; the nearest of the 65536 that were "
               "compared differs in target"));
}

TEST_CASE("Texts that are no keys do no harm") {
  Census census;
  for (const char* text : {"", "x", "template[9]=a", "target[4]=cuda\n"}) census.add(text, Tier::directory);
  CHECK(census.toolchains(Executor::cuda).empty());
  CHECK(census.nearest({}));
}

TEST_SUITE_END();

}  // namespace jitsmith
