// The policy cached_only: what is cached runs without the compiler that made it, and what is not is
// explained.
#include <jitsmith/runtime/engine.hpp>

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include <jitsmith/cache/bundle_file.hpp>

#include "support/compiler_script.hpp"
#include "support/message_of.hpp"
#include "support/offset_run.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

void strict(Options& options) {
  options.policy = Policy::cached_only;
}

void strict_without_compiler(Options& options) {
  strict(options);
  options.host_compiler.compiler = "/nonexistent/c++";
  options.nvrtc = {};
}

Digest fill(const std::string& cache, const std::function<void(Options&)>& change = {}, std::int64_t n = 10) {
  OffsetBench bench(cache, change);
  const Plan plan = bench.engine.plan(offset_request(n));
  REQUIRE(plan.state().source == BinarySource::compiled);
  return plan.state().key;
}

// Every entry of `directory`, as a bundle in one file.
void export_all(const std::string& directory, const std::string& file) {
  CacheOptions options;
  options.directory.explicit_dir = directory;
  Cache cache(std::move(options));
  BundleWriter writer;
  cache.list([&](const ListedEntry& entry) { writer.add(cache.get(entry.key_text)->entry); });
  REQUIRE(writer.size() > 0);
  REQUIRE(writer.write(real_file_system(), file) == 0);
}

}  // namespace

TEST_SUITE_BEGIN("Policy cached_only");

TEST_CASE("What is cached runs where there is no compiler at all") {
  const TempDir cache;
  const Digest key = fill(cache.path().string());
  OffsetBench bench(cache.path().string(), strict_without_compiler);
  const Plan plan = bench.engine.plan(offset_request(10));
  CHECK(plan.state().source == BinarySource::disk);
  CHECK(plan.state().key == key);
  CHECK(run_offset(plan, 10) == expected_offset(10));
  CHECK(bench.engine.plan(offset_request(20)).state().source == BinarySource::memory);
  CHECK(bench.engine.warm(offset_request(10), device_profile("host")) == BinarySource::disk);
  CHECK(bench.engine.stats().compiled == 0);
}

TEST_CASE("What another toolchain made runs, and only under this policy") {
  const TempDir cache, script;
  const Digest key = fill(cache.path().string());
  const auto other = [&](Options& options) { use_compiler_script(options, script / "c++", real_compile()); };
  {
    OffsetBench bench(cache.path().string(), [&](Options& options) {
      other(options);
      strict(options);
    });
    const Plan plan = bench.engine.plan(offset_request(10));
    CHECK(plan.state().source == BinarySource::disk);
    CHECK(plan.state().key == key);
    CHECK(run_offset(plan, 10) == expected_offset(10));
  }
  OffsetBench bench(cache.path().string(), other);
  const Plan plan = bench.engine.plan(offset_request(10));
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(plan.state().key != key);
}

TEST_CASE("Without a compiler any other policy fails as before") {
  const TempDir cache;
  fill(cache.path().string());
  OffsetBench bench(cache.path().string(), [](Options& options) {
    strict_without_compiler(options);
    options.policy = Policy::compile;
  });
  CHECK(contains(message_of<CompileError>([&] { bench.engine.plan(offset_request(10)); }),
                 "no C++ compiler for the host target"));
}

TEST_CASE("A hit of the toolchain that is here asks the cache once") {
  const TempDir cache;
  fill(cache.path().string());
  OffsetBench bench(cache.path().string(), strict);
  CHECK(bench.engine.plan(offset_request(10)).state().source == BinarySource::disk);
  CHECK(bench.engine.cache().stats().hits == 1);
  CHECK(bench.engine.cache().stats().misses == 0);
}

TEST_CASE("Of several toolchains the one that made most is taken") {
  const TempDir cache, script;
  const auto other = [&](Options& options) { use_compiler_script(options, script / "c++", real_compile()); };
  fill(cache.path().string());
  const Digest key = fill(cache.path().string(), other);
  OffsetBench(cache.path().string(), other)
      .engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=128"));
  OffsetBench bench(cache.path().string(), strict_without_compiler);
  CHECK(bench.engine.plan(offset_request(10)).state().key == key);
}

TEST_CASE("What is missing is named with what there is, and how to warm it") {
  const TempDir cache;
  const std::string sentence =
      "mine/offset.cu mine::offset<96> for host with threads=96 is not cached and the policy is "
      "cached_only; ";
  const std::string hint =
      "; warm the cache with `jitsmith warm offset --set n=10 --set variant=plain:threads=96 --arch host`";
  const auto refusal = [&](const std::function<void(Options&)>& change) {
    OffsetBench bench(cache.path().string(), change);
    return message_of<NotCached>(
        [&] { bench.engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=96")); });
  };
  CHECK(refusal(strict) == sentence + "the cache holds no kernel" + hint);
  fill(cache.path().string());
  const std::string held =
      "the cache holds 1 kernel of this template for host; the nearest differs in parameter.threads (64, not "
      "96)";
  CHECK(refusal(strict) == sentence + held + hint);
  CHECK(refusal(strict_without_compiler) == sentence + held + hint);
  CHECK(
      contains(refusal([](Options& options) {
                 strict(options);
                 options.cold = true;
               }),
               "; unset JITSMITH_COLD, which turns every tier off, and then warm the cache with `jitsmith"));
  CHECK(
      contains(refusal([](Options& options) {
                 strict(options);
                 options.cache.enabled = false;
               }),
               "; turn the cache directory on (see JITSMITH_CACHE) and then warm the cache with `jitsmith"));
  CHECK(refusal([](Options& options) {
          strict(options);
          options.host_compiler.compiler = "/bin/sh";
        }) == sentence + held + " and toolchain" + hint);
}

TEST_CASE("A warm that may not compile says the same") {
  const TempDir cache;
  OffsetBench bench(cache.path().string(), strict);
  CHECK(
      message_of<NotCached>([&] { bench.engine.warm(offset_request(10), device_profile("host")); }) ==
      "mine/offset.cu mine::offset<64> for host with threads=64 is not cached and the policy is cached_only; "
      "the cache holds no kernel; allow compiling to warm it");
}

TEST_CASE("A kernel is found or not, without a look at all that is held") {
  const TempDir cache;
  const Op op = offset_op();
  OffsetBench bench(cache.path().string(), [](Options& options) {
    strict(options);
    options.any_toolchain = false;
  });
  CHECK(bench.engine.find(op.variants[0], offset_params(64), host_target()) == BinarySource::none);
  fill(cache.path().string());
  // A look would have been this moment, and what was stored since not counted.
  CHECK(contains(
      message_of<NotCached>([&] { bench.engine.warm(op.variants[0], offset_params(96), host_target()); }),
      "the cache holds 1 kernel of this template for host"));
  CHECK(bench.engine.find(op.variants[0], offset_params(64), host_target()) == BinarySource::disk);
}

TEST_CASE("What there is, is told as it is a moment later, and of another compiler found then") {
  const TempDir cache;
  OffsetBench bench(cache.path().string(), strict_without_compiler);
  const auto refusal = [&] {
    return message_of<NotCached>(
        [&] { bench.engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=96")); });
  };
  CHECK(contains(refusal(), "; the cache holds no kernel; "));
  fill(cache.path().string());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  CHECK(contains(refusal(), "; the cache holds 1 kernel of this template for host; "));
  CHECK(bench.engine.plan(offset_request(10)).state().source == BinarySource::disk);
}

TEST_CASE("A GPU's kernels are found without NVRTC") {
  if (!have_nvrtc()) return;
  const TempDir cache;
  const Op op = offset_op();
  const Target target{Executor::cuda, "sm_90a"};
  CHECK(OffsetBench(cache.path().string()).engine.warm(op.variants[0], offset_params(64), target) ==
        BinarySource::compiled);
  OffsetBench bench(cache.path().string(), strict_without_compiler);
  CHECK(bench.engine.warm(op.variants[0], offset_params(64), target) == BinarySource::disk);
  CHECK(contains(message_of<NotCached>([&] {
                   bench.engine.warm(op.variants[0], offset_params(64), {Executor::cuda, "sm_100a"});
                 }),
                 "1 kernel of this template for sm_90a and none for sm_100a"));
}

TEST_CASE("A bundle serves without a compiler and without a cache directory") {
  const TempDir cache, image;
  const Digest key = fill(cache.path().string());
  export_all(cache.path().string(), image / "kernels.jsb");
  const auto from = [&](const std::string& bundle) {
    return [bundle](Options& options) {
      strict_without_compiler(options);
      options.cache.enabled = false;
      options.bundles = {bundle};
    };
  };
  for (const std::string& bundle : {image / "kernels.jsb", cache.path().string()}) {
    CAPTURE(bundle);
    OffsetBench bench("", from(bundle));
    const Plan plan = bench.engine.plan(offset_request(10));
    CHECK(plan.state().source == BinarySource::bundle);
    CHECK(plan.state().key == key);
    CHECK(run_offset(plan, 10) == expected_offset(10));
    CHECK(contains(message_of<NotCached>([&] {
                     bench.engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=96"));
                   }),
                   "; 1 bundle holds 1 kernel of this template for host"));
  }
}

TEST_CASE("A look-up tells the very kernel from that of another toolchain, and names what differs") {
  const TempDir cache;
  const Op op = offset_op();
  const auto look_up = [&](std::int64_t threads, const std::function<void(Options&)>& change) {
    OffsetBench bench(cache.path().string(), change);
    return bench.engine.look_up(op.variants[0], offset_params(threads), host_target());
  };
  CHECK(look_up(64, {}).nearest == BinarySource::none);
  const Digest key = fill(cache.path().string());
  const Lookup same = look_up(64, {});
  CHECK(same.source == BinarySource::disk);
  CHECK(same.key.digest == key);
  CHECK(same.differences.empty());
  const Lookup unknown = look_up(64, strict_without_compiler);
  CHECK(unknown.source == BinarySource::none);
  CHECK(unknown.other_toolchain == BinarySource::disk);
  CHECK(contains(unknown.why_no_toolchain, "no C++ compiler"));
  const Lookup other = look_up(96, {});
  CHECK(other.source == BinarySource::none);
  CHECK(other.other_toolchain == BinarySource::none);
  REQUIRE(other.differences.size() == 2);
  CHECK(other.differences[0].field == "parameter.threads");
  CHECK(other.differences[0].wanted == "int 96");
  CHECK(other.differences[0].had == "int 64");
  CHECK(other.differences[1].field == "instantiation");
}

TEST_SUITE_END();

}  // namespace jitsmith
