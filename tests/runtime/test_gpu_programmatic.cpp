// Programmatic dependent launches on a real GPU: chains of GEMMs, each reading what the one before wrote.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/runtime/bf16.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/gpu.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

constexpr std::int64_t k_width = 1024, k_links = 6;

// Which column of X becomes column n of Y = X W^T, and whether its sign turns: a GEMM with exactly that is
// exact, and however often it runs, no value grows or dies out.
struct Link {
  std::int64_t step, shift;
  std::int64_t source(std::int64_t n) const { return (n * step + shift) % k_width; }
  float sign(std::int64_t n) const { return n % 3 == 0 ? -1.0F : 1.0F; }

  std::vector<std::uint16_t> weights() const {
    std::vector<std::uint16_t> w(static_cast<std::size_t>(k_width * k_width), 0);
    for (std::int64_t n = 0; n < k_width; ++n)
      w[static_cast<std::size_t>(n * k_width + source(n))] = bf16_from_float(sign(n));
    return w;
  }
};

std::vector<float> applied(const Link& link, const std::vector<float>& x, std::int64_t m) {
  std::vector<float> y(x.size());
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t n = 0; n < k_width; ++n)
      y[static_cast<std::size_t>(row * k_width + n)] =
          link.sign(n) * x[static_cast<std::size_t>(row * k_width + link.source(n))];
  return y;
}

template <class T>
std::unique_ptr<Buffer> on_device(Device& device, const std::vector<T>& values) {
  auto buffer = std::make_unique<Buffer>(device, values.size() * sizeof(T));
  device.copy_in(buffer->data(), values.data(), buffer->size_bytes());
  return buffer;
}

}  // namespace

TEST_SUITE_BEGIN("gpu programmatic");

TEST_CASE(
    "A programmatic chain of dependent GEMMs gives the plain chain's bits in a graph replayed 1000 times") {
  const TempDir cache;
  const auto engine = gpu_engine(cache.path().string());
  if (!engine) return;
  Device& device = engine->current_device();
  for (const std::int64_t m : {1, 8, 32})
    for (const std::string forced :
         {"simt:threads=256,tile_n=4", "simt:threads=64,tile_n=1", "mma:warps=8,cluster=1",
          "mma:warps=4,cluster=2", "mma:warps=1,cluster=8"}) {
      CAPTURE(m);
      CAPTURE(forced);
      const SkinnyGemm request{.m = m, .n = k_width, .k = k_width, .programmatic = true};
      const TypedPlan<SkinnyGemm> plan(
          engine->plan({"skinny_gemm", params_of(request)}, nullptr, ForcedChoice::parse(forced)), request);

      std::vector<Link> links;
      std::vector<std::unique_ptr<Buffer>> weights;
      for (std::int64_t i = 0; i < k_links; ++i) {
        links.push_back({.step = 2 * i + 3, .shift = 17 * i + 1});
        weights.push_back(on_device(device, links.back().weights()));
      }
      std::vector<float> expected(static_cast<std::size_t>(m * k_width));
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i % 251) - 125.0F;
      std::vector<std::uint16_t> x(expected.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_from_float(expected[i]);
      // The last link writes what the first reads, so that a replay starts from the end of the one before.
      const auto even = on_device(device, x), odd = on_device(device, x);
      const GpuStream stream;
      stream.begin_capture();
      for (std::size_t i = 0; i < weights.size(); ++i)
        plan.launch(stream.get(), {.x = (i % 2 == 0 ? even : odd)->data(),
                                   .w = weights[i]->data(),
                                   .y = (i % 2 == 0 ? odd : even)->data(),
                                   .programmatic = true});
      const CUgraphExec graph = stream.end_capture();
      for (int replay = 0; replay < 1000; ++replay) JITSMITH_TEST_DRIVER(cuGraphLaunch, graph, stream.get());
      stream.synchronize();
      JITSMITH_TEST_DRIVER(cuGraphExecDestroy, graph);

      for (int replay = 0; replay < 1000; ++replay)
        for (const Link& link : links) expected = applied(link, expected, m);
      std::vector<std::uint16_t> y(x.size());
      device.copy_out(y.data(), even->data(), y.size() * sizeof(y[0]));
      bool equal = true;
      for (std::size_t i = 0; i < y.size(); ++i) equal = equal && y[i] == bf16_from_float(expected[i]);
      CHECK(equal);
    }
}

TEST_SUITE_END();

}  // namespace jitsmith
