// What needs a real GPU: the bits of every candidate, graphs, and a driver that refuses code.
#include <cstring>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/cache/entry.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/gpu.hpp"
#include "support/kernel_cache.hpp"
#include "support/message_of.hpp"
#include "support/skinny_gemm_cases.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

constexpr SkinnyGemm k_request{
    .m = 3, .n = 37, .k = 1032, .out = ElementType::f32, .bias = SkinnyGemmBiasType::bf16, .residual = true};

std::vector<std::byte> model_bits(const TypedPlan<SkinnyGemm>& plan, const GemmData& data) {
  return skinny_gemm_simt_model(data.operands(), plan.state().selection.params.integer("threads"),
                                plan.request().out)
      .bytes;
}

void check_bits(Engine& engine, const TypedPlan<SkinnyGemm>& plan, const GemmData& data,
                const GemmLayout& layout) {
  const GemmResult result = run_gemm(engine.current_device(), plan, data, layout);
  CHECK(result.guards_intact);
  CHECK(result.y.bytes == model_bits(plan, data));
}

// Turns the code of every entry into one for another machine, each entry still sound.
void spoil_code_of_every_entry(const std::filesystem::path& cache) {
  for (const auto& path : entry_files(cache)) {
    const std::string bytes = bytes_of(path);
    Decoded decoded = decode(std::as_bytes(std::span(bytes)));
    REQUIRE(decoded.entry);
    decoded.entry->payload[18] = std::byte{62};  // e_machine: x86-64
    decoded.entry->payload[19] = std::byte{0};
    const std::vector<std::byte> spoiled = encode(*decoded.entry);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(spoiled.data()), static_cast<std::streamsize>(spoiled.size()));
  }
}

// Whose bits are those of the model.
std::unique_ptr<Engine> simt_engine(const TempDir& cache, const EventSink& events = {}) {
  return gpu_engine(cache.path().string(), events, {{"skinny_gemm", "simt"}});
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("Every candidate gives the model's bits on the GPU, and writes nothing outside Y") {
  const TempDir cache;
  const auto engine = simt_engine(cache);
  if (!engine) return;
  const Op& op = engine->op("skinny_gemm");
  const Variant& simt = *op.variant("simt");
  std::uint64_t seed = 0;
  for (const std::int64_t m : {1, 2, 3, 5, 32})
    for (const ElementType out : {ElementType::bf16, ElementType::f32})
      for (const bool aligned : {true, false}) {
        const SkinnyGemm request{.m = m,
                                 .n = 129,
                                 .k = aligned ? 1032 : 1031,
                                 .out = out,
                                 .bias = SkinnyGemmBiasType::f32,
                                 .residual = true,
                                 .aligned = aligned};
        const GemmData data = gemm_data(request, GemmValues::random, ++seed);
        const GemmLayout layout{
            .x_pad = aligned ? 8 : 3, .y_pad = 3, .residual_pad = 5, .offset = aligned ? 0 : 1};
        const Params complete = op.request.complete(params_of(request), "skinny_gemm");
        for (const Params& params : simt.candidates(complete, engine->current_device().facts())) {
          const std::string forced = "simt:" + to_string(params);
          CAPTURE(forced);
          CAPTURE(m);
          const TypedPlan<SkinnyGemm> plan(
              engine->plan({"skinny_gemm", complete}, nullptr, ForcedChoice::parse(forced)), request);
          check_bits(*engine, plan, data, layout);
        }
      }
}

TEST_CASE(
    "The tensor cores' sums of integers are exact, others within the tolerance, the same at every run") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
  if (!engine) return;
  const Op& op = engine->op("skinny_gemm");
  std::uint64_t seed = 0;
  for (const std::int64_t m : {1, 7, 9, 32})
    for (const ElementType out : {ElementType::bf16, ElementType::f32})
      for (const bool aligned : {true, false}) {
        const SkinnyGemm request{.m = m,
                                 .n = 129,
                                 .k = aligned ? 3208 : 3203,
                                 .out = out,
                                 .bias = SkinnyGemmBiasType::f32,
                                 .residual = true,
                                 .aligned = aligned};
        const GemmLayout layout{
            .x_pad = aligned ? 8 : 3, .y_pad = 3, .residual_pad = 5, .offset = aligned ? 0 : 1};
        const GemmData integers = gemm_data(request, GemmValues::integers, ++seed);
        const GemmData random = gemm_data(request, GemmValues::random, seed);
        const GemmData special = gemm_data(request, GemmValues::special, seed);
        const Params complete = op.request.complete(params_of(request), "skinny_gemm");
        for (const Params& params :
             op.variant("mma")->candidates(complete, engine->current_device().facts())) {
          const std::string forced = "mma:" + to_string(params);
          CAPTURE(forced);
          CAPTURE(m);
          const TypedPlan<SkinnyGemm> plan(
              engine->plan({"skinny_gemm", complete}, nullptr, ForcedChoice::parse(forced)), request);
          const auto run = [&](const GemmData& data) {
            const GemmResult result = run_gemm(engine->current_device(), plan, data, layout);
            CHECK(result.guards_intact);
            return result.y;
          };
          CHECK(run(integers).bytes == skinny_gemm_simt_model(integers.operands(), 32, out).bytes);
          const Array y = run(random);
          const CheckResult check = check_skinny_gemm(random.operands(), y);
          CHECK_MESSAGE(check.passed, check.summary);
          CHECK(run(random).bytes == y.bytes);
          const CheckResult of_special = check_skinny_gemm(special.operands(), run(special));
          CHECK_MESSAGE(of_special.passed, of_special.summary);
        }
      }
}

TEST_CASE("On the tensor cores a row has the same bits whatever M it comes with, and with any tile") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
  if (!engine) return;
  const auto rows = [&](std::int64_t m, std::int64_t cluster, std::int64_t tile_m, std::int64_t tile_n) {
    const SkinnyGemm request{.m = m, .n = 129, .k = 7168, .out = ElementType::f32};
    GemmData data = gemm_data({.m = 32, .n = 129, .k = 7168}, GemmValues::random, 4);
    data.x.shape[0] = m;
    data.x.bytes.resize(static_cast<std::size_t>(m * 7168 * 2));
    const std::string forced =
        fmt::format("mma:warps=8,cluster={},tile_m={},tile_n={},vector=true", cluster, tile_m, tile_n);
    const TypedPlan<SkinnyGemm> plan(
        engine->plan({"skinny_gemm", params_of(request)}, nullptr, ForcedChoice::parse(forced)), request);
    return run_gemm(engine->current_device(), plan, data).y.bytes;
  };
  for (const std::int64_t cluster : {1, 2, 4, 8}) {
    const std::vector<std::byte> whole = rows(32, cluster, 8, 16);
    for (std::int64_t m = 1; m <= 32; ++m)
      for (const std::int64_t tile_m : {8, 16, 32}) {
        CAPTURE(cluster);
        CAPTURE(m);
        CAPTURE(tile_m);
        const std::vector<std::byte> part = rows(m, cluster, tile_m, tile_m == 8 ? 32 : 16);
        CHECK(std::memcmp(part.data(), whole.data(), part.size()) == 0);
      }
  }
}

TEST_CASE("NaN, infinities, subnormals and signed zeros have the model's bits on the GPU") {
  const TempDir cache;
  const auto engine = simt_engine(cache);
  if (!engine) return;
  for (const ElementType out : {ElementType::bf16, ElementType::f32})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SkinnyGemm request = k_request;
      request.out = out;
      request.k = 64;
      for (const GemmValues values : {GemmValues::special, GemmValues::extreme})
        check_bits(*engine, engine->plan(request), gemm_data(request, values, seed),
                   {.in_place = seed % 2 != 0});
    }
}

TEST_CASE("In batch-invariant mode a row has the same bits on the GPU whatever M it comes with") {
  const TempDir cache;
  const auto engine = simt_engine(cache);
  if (!engine) return;
  const auto request = [](std::int64_t m) {
    return SkinnyGemm{.m = m, .n = 129, .k = 2048, .batch_invariant = true};
  };
  const GemmData all = gemm_data(request(32), GemmValues::random, 4);
  const Array whole = run_gemm(engine->current_device(), engine->plan(request(32)), all).y;
  for (std::int64_t m = 1; m < 32; ++m) {
    GemmData part = gemm_data(request(m), GemmValues::random, 4);
    part.w = all.w;
    std::memcpy(part.x.bytes.data(), all.x.bytes.data(), part.x.bytes.size());
    const Array y = run_gemm(engine->current_device(), engine->plan(request(m)), part).y;
    CAPTURE(m);
    CHECK(std::memcmp(y.bytes.data(), whole.bytes.data(), y.bytes.size()) == 0);
  }
}

TEST_CASE("A captured launch runs at every replay, and nothing is planned during capture") {
  const TempDir cache;
  const auto engine = simt_engine(cache);
  if (!engine) return;
  // Y += X W^T in place, on integers: after 100 replays it is exactly 100 times the product.
  const SkinnyGemm request{.m = 2, .n = 5, .k = 64, .out = ElementType::f32, .residual = true};
  GemmData data = gemm_data(request, GemmValues::integers, 1);
  std::memset(data.residual->bytes.data(), 0, data.residual->bytes.size());
  const auto plan = engine->plan(request);
  const GemmMemory memory(engine->current_device(), request, data, {.y_pad = 3, .in_place = true});
  const GpuStream stream;
  stream.begin_capture();
  CHECK(engine->plan(request, stream.get()).share() == plan.share());
  const std::string message = message_of<NotCached>(
      [&] { engine->plan(SkinnyGemm{.m = 8, .n = 5, .k = 64, .out = ElementType::bf16}, stream.get()); });
  CHECK(contains(message, "the stream is being captured"));
  plan.launch(stream.get(), memory.args());
  const CUgraphExec graph = stream.end_capture();
  for (int i = 0; i < 100; ++i) JITSMITH_TEST_DRIVER(cuGraphLaunch, graph, stream.get());
  stream.synchronize();
  JITSMITH_TEST_DRIVER(cuGraphExecDestroy, graph);

  Array expected = skinny_gemm_simt_model(data.operands(), 32, ElementType::f32);
  for (std::int64_t i = 0; i < expected.count(); ++i) expected.data<float>()[i] *= 100;
  const GemmResult result = memory.result();
  CHECK(result.guards_intact);
  CHECK(result.y.bytes == expected.bytes);
}

TEST_CASE("Compiled, in memory and from disk, a kernel gives the same bits") {
  const TempDir cache;
  const auto cold = simt_engine(cache);
  if (!cold) return;
  const GemmData data = gemm_data(k_request, GemmValues::random, 6);
  const auto bits = [&](Engine& engine, BinarySource source) {
    const Plan plan = engine.plan({"skinny_gemm", params_of(k_request)});
    CHECK(plan.state().source == source);
    return run_gemm(engine.current_device(), TypedPlan<SkinnyGemm>(plan, k_request), data).y.bytes;
  };
  const std::vector<std::byte> first = bits(*cold, BinarySource::compiled);
  CHECK(bits(*cold, BinarySource::compiled) == first);  // the same plan again
  const auto warm = simt_engine(cache);
  CHECK(bits(*warm, BinarySource::disk) == first);
}

TEST_CASE("A sound entry with code that the driver refuses is dropped and compiled again") {
  const TempDir cache;
  const auto first = simt_engine(cache);
  if (!first) return;
  first->plan(k_request);
  spoil_code_of_every_entry(cache.path());

  Events events;
  const auto second = simt_engine(cache, events.sink());
  const auto plan = second->plan(k_request);
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(events.count("cache.refused_by_driver") == 1);
  check_bits(*second, plan, gemm_data(k_request, GemmValues::random, 8), {});
  CHECK(simt_engine(cache)->plan(k_request).state().source == BinarySource::disk);
}

TEST_CASE("Threads without a context plan and launch on the default device") {
  const TempDir cache;
  const auto engine = simt_engine(cache);
  if (!engine) return;
  const GemmData data = gemm_data(k_request, GemmValues::random, 12);
  std::vector<std::vector<std::byte>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back(
        [&] { result = run_gemm(engine->current_device(), engine->plan(k_request), data).y.bytes; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == model_bits(engine->plan(k_request), data));
}

TEST_SUITE_END();

}  // namespace jitsmith
