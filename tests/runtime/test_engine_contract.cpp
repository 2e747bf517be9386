// What an engine promises of its edges: a user's op that says nonsense, plans that were never made, warming.
#include <jitsmith/runtime/engine.hpp>

#include <doctest/doctest.h>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/engine_options.hpp"
#include "support/message_of.hpp"
#include "support/offset_op.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

// What planning `op` says.
std::string refusal_of(Op op) {
  Engine engine(options_without_cache());
  engine.add(std::move(op));
  return message_of<InvalidRequest>([&] { engine.plan(offset_request(10)); });
}

// A typed request with more fields than a plan key holds.
struct Wide {
  static constexpr std::string_view k_op = "offset";
  struct Args {};
  template <class Visitor>
  void visit(Visitor&& visitor) const {
    for (int i = 0; i < 40; ++i) visitor("n", i);
  }
  static void run(const Plan&, Stream, const Wide&, const Args&) {}
};

}  // namespace

TEST_SUITE_BEGIN("Engine contract");

TEST_CASE("Parameters that a user's op gives are held to its own schema") {
  const auto with = [](auto change) {
    Op op = offset_op();
    change(op);
    return refusal_of(std::move(op));
  };
  const std::string rule = "threads=1000 is not allowed; give a multiple of 32 from 32 to 256";
  CHECK(contains(with([](Op& op) {
                   op.variants[0].candidates = [](const Params&, const DeviceFacts&) {
                     return std::vector<Params>{offset_params(1000)};
                   };
                 }),
                 rule));
  CHECK(contains(with([](Op& op) {
                   op.variants[0].candidates = {};
                   op.generic_params = [](const Params&) { return offset_params(1000); };
                 }),
                 rule));
  Engine engine(options_without_cache());
  const Op op = offset_op();
  CHECK(contains(
      message_of<InvalidRequest>([&] { engine.warm(op.variants[0], offset_params(1000), host_target()); }),
      rule));
  CHECK(contains(
      message_of<InvalidRequest>([&] { engine.compile(op.variants[0], offset_params(1000), host_target()); }),
      rule));
}

TEST_CASE("A launch that no device allows is a misfit, for every family") {
  Op op = offset_op();
  op.variants[0].candidates = {};
  op.variants[0].shape = [](const Params&, const Params&) {
    return LaunchShape{.grid = {1, 1, 1}, .block = {64, 1, 1}, .dynamic_shared_bytes = 900 * 1024};
  };
  Engine engine(options_without_cache());
  engine.add(std::move(op));
  CHECK(message_of<InvalidRequest>(
            [&] { engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=64")); }) ==
        "offset can't be forced to plain:threads=64 here, because it needs 921600 bytes of shared memory and "
        "the device allows 232448; choose others or leave it out");
  CHECK(contains(message_of<InvalidRequest>([&] { engine.plan(offset_request(10)); }),
                 "it needs 921600 bytes of shared memory"));
}

TEST_CASE("A typed request with too many fields is refused, not cut") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  CHECK(contains(message_of<InvalidRequest>([&] { engine.plan(Wide{}); }),
                 "more fields than a plan key holds"));
}

TEST_CASE("A value that an enum does not have is refused by name") {
  Engine engine(options_without_cache());
  CHECK(message_of<InvalidRequest>([&] {
          engine.plan(SkinnyGemm{.m = 1, .n = 8, .k = 8, .bias = static_cast<SkinnyGemmBiasType>(9)});
        }) == "skinny_gemm: bias=(no such value) is not allowed; give none, bf16 or f32");
}

TEST_CASE("A plan that was never made says so") {
  const TypedPlan<SkinnyGemm> plan;
  CHECK_FALSE(plan);
  CHECK(contains(message_of<InvalidRequest>([&] { plan.launch(nullptr, {}); }), "was never made"));
  CHECK(contains(message_of<InvalidRequest>([&] { (void)plan.reason(); }), "was never made"));
}

TEST_CASE("An equal untyped request finds the plan, and is counted once") {
  const TempDir cache;
  Engine engine(host_options(cache.path().string()));
  engine.add(offset_op());
  const Plan plan = engine.plan(offset_request(10));
  for (int i = 0; i < 5; ++i) CHECK(engine.plan(offset_request(10)).share() == plan.share());
  CHECK(engine.stats().plans == 1);
  const Plan forced = engine.plan(offset_request(10), nullptr, ForcedChoice::parse("plain:threads=128"));
  CHECK(forced.state().selection.params == offset_params(128));
  CHECK(engine.plan(offset_request(10)).share() == plan.share());
}

TEST_CASE("A second original kernel is refused") {
  Engine engine(options_without_cache());
  const auto nothing = [](Stream, const SkinnyGemm&, const SkinnyGemm::Args&) {};
  engine.set_original<SkinnyGemm>(nothing);
  CHECK(message_of<InvalidRequest>([&] { engine.set_original<SkinnyGemm>(nothing); }) ==
        "op 'skinny_gemm' has an original kernel already; register one, before planning");
}

TEST_CASE("Warming looks at the cache each time, and heeds a NoCompileScope") {
  const TempDir cache;
  Engine engine(host_options(cache.path().string()));
  engine.add(offset_op());
  const DeviceFacts host = device_profile("host");
  {
    const NoCompileScope scope(engine);
    CHECK(contains(message_of<NotCached>([&] { engine.warm(offset_request(10), host); }), "NoCompileScope"));
  }
  CHECK(engine.warm(offset_request(10), host) == BinarySource::compiled);
  CHECK(engine.warm(offset_request(10), host) == BinarySource::disk);
  engine.cache().clear();
  CHECK(engine.warm(offset_request(10), host) == BinarySource::compiled);
}

TEST_CASE("A forced choice for no op, and a template folder that is not there, are warned of") {
  Events events;
  Options options = options_without_cache();
  options.events = events.sink();
  options.forced["skinny_gem"] = "simt";
  options.template_folder = "/nowhere/at/all";
  const Engine engine(std::move(options));
  CHECK(contains(events.text("forced.unknown_op"), "op 'skinny_gem', which is not a built-in one"));
  CHECK(contains(events.text("templates.no_folder"), "/nowhere/at/all does not exist"));
}

TEST_CASE("160 threads that a caller forces keep the 16-byte loads of an aligned request") {
  const Engine engine(options_without_cache());
  const auto forced = [&](const char* text) {
    return engine
        .explain({"skinny_gemm", {{"m", 1}, {"n", 4096}, {"k", 5120}}}, device_profile("h200"),
                 ForcedChoice::parse(text))
        .params;
  };
  CHECK(forced("simt:threads=160").flag("vector"));
  CHECK(forced("simt:threads=160").integer("threads") == 160);
  CHECK(forced("simt:unroll=8").flag("vector"));
  CHECK(forced("simt:threads=96,unroll=8,tile_n=1").integer("unroll") == 8);
  CHECK(contains(message_of<InvalidRequest>([] { ForcedChoice::parse("simt:threads=64,threads=128"); }),
                 "gives threads twice"));
}

TEST_SUITE_END();

}  // namespace jitsmith
