// The dense projections of one decode step as a chain of dependent skinny GEMMs in one CUDA graph: plain
// launches, programmatic dependent launches, and cuBLAS, beside the time to read all weights once.
//
//   bench_decode_chain [--cublas PATH]
//
// The model is DeepSeek-V4.1-Flash on 8 GPUs: 40 layers of ten projections and the head, 401 GEMMs, 3.3 GB of
// weights. Each GEMM reads what the one before wrote. Both jitsmith chains must end with the same bits.
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <jitsmith/runtime/bf16.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "cublas.hpp"
#include "cuda_graphs.hpp"
#include "read_rate.hpp"

namespace jitsmith::bench {
namespace {

constexpr int k_layers = 40, k_rounds = 9;
constexpr std::int64_t k_widest = 16384;  // of an activation

struct Extent {
  std::int64_t n, k;
};
constexpr Extent k_layer[] = {{1792, 5120}, {4096, 1280}, {4096, 1280}, {32, 5120},   {128, 512},
                              {1024, 5120}, {512, 5120},  {384, 5120},  {1024, 4096}, {5120, 1024}};
constexpr Extent k_head{16160, 5120};

// Random values that keep the size of the activations: their variance is about 1 / K.
std::vector<std::uint16_t> random_weights(std::int64_t k) {
  std::mt19937 random(static_cast<unsigned>(k));
  const float scale = std::exp2(-std::round(std::log2(std::sqrt(static_cast<float>(k) / 3))));
  std::uniform_real_distribution<float> value(-scale, scale);
  std::vector<std::uint16_t> weights(std::size_t{1} << 23);
  for (std::uint16_t& weight : weights) weight = bf16_from_float(value(random));
  return weights;
}

struct Gemm {
  Extent extent;
  std::unique_ptr<Buffer> w;
  TypedPlan<SkinnyGemm> plain, programmatic;
};

class Chain {
 public:
  Chain(Engine& engine, std::int64_t m) : device_(engine.current_device()), m_(m) {
    std::map<std::int64_t, std::vector<std::uint16_t>> weights;
    const auto add = [&](const Extent& extent) {
      auto& values = weights[extent.k];
      if (values.empty()) values = random_weights(extent.k);
      Gemm gemm{extent, std::make_unique<Buffer>(device_, static_cast<std::size_t>(extent.n * extent.k * 2)),
                engine.plan(SkinnyGemm{.m = m, .n = extent.n, .k = extent.k}),
                engine.plan(SkinnyGemm{.m = m, .n = extent.n, .k = extent.k, .programmatic = true})};
      for (std::size_t at = 0; at < gemm.w->size_bytes(); at += values.size() * 2)
        device_.copy_in(static_cast<std::byte*>(gemm.w->data()) + at, values.data(),
                        std::min(values.size() * 2, gemm.w->size_bytes() - at));
      weight_bytes_ += static_cast<double>(gemm.w->size_bytes());
      gemms_.push_back(std::move(gemm));
    };
    for (int layer = 0; layer < k_layers; ++layer)
      for (const Extent& extent : k_layer) add(extent);
    add(k_head);
    for (auto& buffer : activations_)
      buffer = std::make_unique<Buffer>(device_, static_cast<std::size_t>(m * k_widest * 2));
  }

  double weight_bytes() const { return weight_bytes_; }
  std::size_t size() const { return gemms_.size(); }

  // The same activations at every start.
  void reset() {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(m_ * k_widest));
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-0x1p-50F, 0x1p-50F);
    for (std::uint16_t& v : values) v = bf16_from_float(value(random));
    for (auto& buffer : activations_) device_.copy_in(buffer->data(), values.data(), values.size() * 2);
  }
  std::vector<std::uint16_t> result() {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(m_ * k_head.n));
    device_.synchronize();
    device_.copy_out(values.data(), activations_[gemms_.size() % 2]->data(), values.size() * 2);
    return values;
  }

  void run(CUstream stream, bool programmatic) {
    for (std::size_t i = 0; i < gemms_.size(); ++i)
      (programmatic ? gemms_[i].programmatic : gemms_[i].plain)
          .launch(stream, {.x = activations_[i % 2]->data(),
                           .w = gemms_[i].w->data(),
                           .y = activations_[(i + 1) % 2]->data(),
                           .programmatic = programmatic});
  }
  void run(CUstream stream, Cublas& cublas) {
    for (std::size_t i = 0; i < gemms_.size(); ++i)
      cublas.gemm(stream, m_, gemms_[i].extent.n, gemms_[i].extent.k, activations_[i % 2]->data(),
                  gemms_[i].w->data(), activations_[(i + 1) % 2]->data(), false);
  }

 private:
  Device& device_;
  std::int64_t m_;
  std::vector<Gemm> gemms_;
  std::unique_ptr<Buffer> activations_[2];
  double weight_bytes_ = 0;
};

void measure(Engine& engine, const CudaGraphs& cuda, Cublas& cublas, const ReadRate& rate, std::int64_t m) {
  Chain chain(engine, m);
  const NoCompileScope scope(engine);
  chain.reset();
  chain.run(nullptr, false);
  const std::vector<std::uint16_t> plain = chain.result();
  chain.reset();
  chain.run(nullptr, true);
  const std::vector<std::uint16_t> programmatic = chain.result();
  if (plain != programmatic)
    throw std::runtime_error("the programmatic chain has other bits than the plain one");
  for (const std::uint16_t value : plain)
    if (const float v = float_from_bf16(value); !std::isfinite(v) || v == 0)
      throw std::runtime_error("the chain lost its values, so that comparing them shows nothing");

  const std::vector<double> us =
      median_us(cuda,
                {{[&](CUstream stream, std::size_t) { chain.run(stream, false); }},
                 {[&](CUstream stream, std::size_t) { chain.run(stream, true); }},
                 {[&](CUstream stream, std::size_t) { chain.run(stream, cublas); }}},
                1, k_rounds);
  fmt::print("{:>3} {:>6} {:>9.1f} {:>13.1f} {:>9.1f} {:>9.1f} {:>7.2f}\n", m, chain.size(), us[0], us[1],
             us[2], rate.us_for(chain.weight_bytes()), us[2] / us[1]);
}

int run(const std::string& cublas_path) {
  Engine engine;
  const CudaGraphs cuda;
  const Buffer warm_up(engine.current_device(), 256);  // makes the context current, for cuBLAS too
  Cublas cublas(cublas_path);
  const ReadRate rate = measure_read_rate(engine, cuda);
  fmt::print("{}, cuBLAS {}, read rate {:.0f} GB/s; microseconds a chain\n",
             engine.current_device().facts().name, cublas.version(), rate.gb_per_s);
  fmt::print("{:>3} {:>6} {:>9} {:>13} {:>9} {:>9} {:>7}\n", "m", "GEMMs", "plain", "programmatic", "cuBLAS",
             "floor", "ratio");
  for (const std::int64_t m : {1, 8}) measure(engine, cuda, cublas, rate, m);
  return 0;
}

}  // namespace
}  // namespace jitsmith::bench

int main(int argc, char** argv) {
  std::string cublas;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--cublas") cublas = argv[i + 1];
  try {
    return jitsmith::bench::run(cublas);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_decode_chain: {}\n", error.what());
    return 1;
  }
}
