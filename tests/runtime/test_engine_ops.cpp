// How an engine treats ops and their decisions. Nothing here is compiled.
#include <jitsmith/runtime/engine.hpp>

#include <cstring>
#include <fstream>

#include <doctest/doctest.h>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/engine_options.hpp"
#include "support/message_of.hpp"
#include "support/offset_op.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

std::string refusal_of(Op op) {
  Engine engine(options_without_cache());
  return message_of<InvalidRequest>([&] { engine.add(std::move(op)); });
}

// As a caller's own kernel: out[i] = in[i] * 3.
void triple(float* out, const float* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] * 3;
}

}  // namespace

TEST_SUITE_BEGIN("Engine ops");

TEST_CASE("An op is added once, beside the built-in ones") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  CHECK(engine.op("offset").name == "offset");
  CHECK(engine.op("skinny_gemm").name == "skinny_gemm");
  CHECK(engine.ops().size() >= 2);
  CHECK(message_of<InvalidRequest>([&] { engine.add(offset_op()); }) ==
        "there is already an op 'offset'; choose another name");
  CHECK(engine.op("offset").name == "offset");
}

TEST_CASE("An incomplete op is refused") {
  const auto with = [](auto change) {
    Op op = offset_op();
    change(op);
    return refusal_of(std::move(op));
  };
  CHECK(contains(with([](Op& op) { op.name.clear(); }), "op '' is incomplete"));
  CHECK(contains(with([](Op& op) { op.variants.clear(); }), "op 'offset' is incomplete"));
  CHECK(contains(with([](Op& op) { op.generic_variant = "other"; }), "op 'offset' is incomplete"));
  CHECK(contains(with([](Op& op) { op.generic_params = {}; }), "op 'offset' is incomplete"));
  CHECK(with([](Op& op) { op.variants[0].shape = {}; }) ==
        "variant 'plain' of op 'offset' has no launch shape; give it one");
}

TEST_CASE("An unknown op is refused with the names there are") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  const std::string message = message_of<InvalidRequest>([&] { engine.plan({"gemm", {}}); });
  CHECK(contains(message, "there is no op 'gemm'; give one of "));
  CHECK(contains(message, "offset"));
  CHECK(contains(message, "skinny_gemm"));
}

TEST_CASE("A request that the schema does not allow is refused before anything else") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  CHECK(message_of<InvalidRequest>([&] {
          engine.plan({"offset", {{"n", std::int64_t{-1}}}});
        }) == "offset: n=-1 is not allowed; give an integer of at least 0");
  CHECK(contains(message_of<InvalidRequest>([&] {
                   engine.plan({"offset", {}});
                 }),
                 "offset needs parameter 'n' (elements)"));
}

TEST_CASE("A declined request runs the caller's own kernel, with the same bytes as without us") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  std::int64_t seen = 0;
  engine.set_original<Offset>([&seen](Stream stream, const Offset& request, const Offset::Args& args) {
    CHECK(stream == reinterpret_cast<Stream>(0x77));
    CHECK(args.step == 2.0f);
    seen = request.n;
    triple(args.y, args.x, request.n);
  });
  std::vector<float> x(1001), ours(1001), theirs(1001);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.37f - 7;
  const auto plan = engine.plan(Offset{.n = 1001});
  CHECK_FALSE(plan);
  CHECK(plan.reason() == "offset serves n up to 1000");
  plan.launch(reinterpret_cast<Stream>(0x77), {ours.data(), x.data(), 2});
  triple(theirs.data(), x.data(), 1001);
  CHECK(seen == 1001);
  CHECK(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)) == 0);
}

TEST_CASE("A declined request without an original kernel is refused, until one is registered") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  CHECK(message_of<InvalidRequest>([&] { engine.plan(Offset{.n = 1001}).launch(nullptr, {}); }) ==
        "offset serves n up to 1000; no original kernel is registered to run instead");
  int calls = 0;
  engine.set_original<Offset>([&calls](Stream, const Offset&, const Offset::Args&) { ++calls; });
  engine.plan(Offset{.n = 1001}).launch(nullptr, {});
  CHECK(calls == 1);
}

TEST_CASE("An empty output is a plan that does nothing") {
  Engine engine(options_without_cache());
  engine.add(offset_op());
  engine.set_original<Offset>([](Stream, const Offset&, const Offset::Args&) { FAIL("must not be called"); });
  const auto plan = engine.plan(Offset{.n = 0});
  CHECK(plan);
  plan.launch(nullptr, {});
  CHECK(engine.stats().compiled == 0);
}

TEST_CASE("Forced choices and the user's table reach selection") {
  const TempDir folder;
  std::ofstream(folder / "table.jsonl")
      << R"({"op": "offset", "arch": "host", "when": {}, "variant": "plain", "params": {"threads": 96}, )"
      << R"("provenance": {"note": "published, not measured here"}})"
      << "\nnot json\n";
  Options options = options_without_cache();
  options.tuning_table = folder / "table.jsonl";
  Events events;
  options.events = events.sink();
  Engine engine(options);
  engine.add(offset_op());
  Selection selection = engine.explain(offset_request(10), device_profile("host"));
  CHECK(selection.source == SelectionSource::user_table);
  CHECK(selection.params.integer("threads") == 96);
  CHECK(events.count("table.bad_line") == 1);
  CHECK(contains(events.text("table.bad_line"), "table.jsonl:2: "));

  options.forced["offset"] = "plain:threads=160";
  Engine forced(options);
  forced.add(offset_op());
  CHECK(forced.explain(offset_request(10), device_profile("host")).source == SelectionSource::forced);
  CHECK(forced.explain(offset_request(10), device_profile("host")).params.integer("threads") == 160);
  selection =
      forced.explain(offset_request(10), device_profile("host"), ForcedChoice::parse("plain:threads=32"));
  CHECK(selection.params.integer("threads") == 32);

  options.forced["offset"] = "plain:";
  CHECK_THROWS_AS(Engine{options}, InvalidRequest);
}

TEST_CASE("Shipped tables are sound") {
  Options options = options_without_cache();
  Events events;
  options.events = events.sink();
  const Engine engine(options);
  CHECK(events.count("table.bad_line") == 0);
}

TEST_SUITE_END();

}  // namespace jitsmith
