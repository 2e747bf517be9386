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

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("Every candidate gives the model's bits on the GPU, and writes nothing outside Y") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
  if (!engine) return;
  const Op& op = engine->op("skinny_gemm");
  const Variant& simt = op.variants.front();
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

TEST_CASE("NaN, infinities, subnormals and signed zeros have the model's bits on the GPU") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
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
  const auto engine = gpu_engine(cache.path().string());
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
  const auto engine = gpu_engine(cache.path().string());
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
  const auto cold = gpu_engine(cache.path().string());
  if (!cold) return;
  const GemmData data = gemm_data(k_request, GemmValues::random, 6);
  const auto bits = [&](Engine& engine, BinarySource source) {
    const Plan plan = engine.plan({"skinny_gemm", params_of(k_request)});
    CHECK(plan.state().source == source);
    return run_gemm(engine.current_device(), TypedPlan<SkinnyGemm>(plan, k_request), data).y.bytes;
  };
  const std::vector<std::byte> first = bits(*cold, BinarySource::compiled);
  CHECK(bits(*cold, BinarySource::compiled) == first);  // the same plan again
  const auto warm = gpu_engine(cache.path().string());
  CHECK(bits(*warm, BinarySource::disk) == first);
}

TEST_CASE("A sound entry with code that the driver refuses is dropped and compiled again") {
  const TempDir cache;
  const auto first = gpu_engine(cache.path().string());
  if (!first) return;
  first->plan(k_request);
  spoil_code_of_every_entry(cache.path());

  Events events;
  const auto second = gpu_engine(cache.path().string(), events.sink());
  const auto plan = second->plan(k_request);
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(events.count("cache.refused_by_driver") == 1);
  check_bits(*second, plan, gemm_data(k_request, GemmValues::random, 8), {});
  CHECK(gpu_engine(cache.path().string())->plan(k_request).state().source == BinarySource::disk);
}

TEST_CASE("Threads without a context plan and launch on the default device") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
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
