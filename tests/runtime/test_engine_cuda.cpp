// The CUDA path without a GPU: real NVRTC, real cache, a driver that records (tests/support/fake_cuda.hpp).
#include <jitsmith/runtime/engine.hpp>

#include <cstring>
#include <latch>
#include <thread>

#include <doctest/doctest.h>

#include <jitsmith/templates/skinny_gemm/args.h>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include "support/allocation_count.hpp"
#include "support/fake_driver.hpp"
#include "support/message_of.hpp"
#include "support/offset_op.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

const Stream k_stream = reinterpret_cast<Stream>(0x51);

void add_offset(Engine& engine) {
  engine.add(offset_op());
}

template <class T>
T value_at(const FakeLaunch& launch, std::size_t offset) {
  T value;
  std::memcpy(&value, launch.args + offset, sizeof(T));
  return value;
}

}  // namespace

TEST_SUITE_BEGIN("Engine on CUDA");

TEST_CASE("A plan is compiled for the device, loaded once, and made ready before its first launch") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  add_offset(engine);
  const Plan plan = engine.plan(offset_request(100), k_stream);
  CHECK(plan.state().source == BinarySource::compiled);
  CHECK(fake.loads == 1);
  CHECK(fake.prepared[0] == 1);
  CHECK(fake.launches == 0);
  CHECK(plan.state().facts.param_bytes == std::vector<std::uint32_t>{8, 8, 4, 4});
  CHECK(engine.current_device().facts().target == Target{Executor::cuda, "sm_90a"});
  CHECK(engine.plan(offset_request(101), k_stream).state().source == BinarySource::memory);
  CHECK(engine.plan(offset_request(100), k_stream).share() == plan.share());
  CHECK(fake.loads == 1);
}

TEST_CASE("A launch passes the exact grid, block, stream and parameters") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  add_offset(engine);
  float x = 0, y = 0;
  engine.plan(Offset{.n = 130}, k_stream).launch(k_stream, {.y = &y, .x = &x, .step = 2.5f});
  CHECK(fake.launches == 1);
  const FakeLaunch& launch = fake.last;
  CHECK(launch.config.gridDimX == 3);
  CHECK(launch.config.gridDimY == 1);
  CHECK(launch.config.gridDimZ == 1);
  CHECK(launch.config.blockDimX == 64);
  CHECK(launch.config.blockDimY == 1);
  CHECK(launch.config.sharedMemBytes == 0);
  CHECK(launch.config.hStream == k_stream);
  CHECK(launch.config.numAttrs == 0);
  CHECK(value_at<float*>(launch, 0) == &y);
  CHECK(value_at<float*>(launch, 8) == &x);
  CHECK(value_at<float>(launch, 16) == 2.5f);
  CHECK(value_at<int>(launch, 20) == 130);
}

TEST_CASE("skinny_gemm's one parameter holds what the caller gave, dense strides filled in") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.param_count = 1;
  fake.param_bytes[0] = sizeof(SkinnyGemmArgs);
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  const auto plan = engine.plan(SkinnyGemm{
      .m = 3, .n = 5, .k = 64, .out = ElementType::f32, .bias = SkinnyGemmBiasType::bf16, .residual = true});
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  plan.launch(k_stream, {.x = at(0x1000),
                         .w = at(0x2000),
                         .y = at(0x4000),
                         .bias = at(0x3000),
                         .residual = at(0x4000),
                         .x_stride = 72,
                         .y_stride = 6,
                         .residual_stride = 6});
  const auto args = value_at<SkinnyGemmArgs>(fake.last, 0);
  CHECK(args.x == at(0x1000));
  CHECK(args.w == at(0x2000));
  CHECK(args.bias == at(0x3000));
  CHECK(args.residual == at(0x4000));
  CHECK(args.y == at(0x4000));
  CHECK(args.x_stride == 72);
  CHECK(args.w_stride == 64);
  CHECK(args.y_stride == 6);
  CHECK(args.residual_stride == 6);
  CHECK(args.m == 3);
  CHECK(args.n == 5);
  CHECK(args.k == 64);
  CHECK(args.bias_type == SkinnyGemmBias::bf16);
  const LaunchShape& shape = plan.state().selection.shape;
  CHECK(fake.last.config.gridDimX == shape.grid[0]);
  CHECK(fake.last.config.blockDimX == shape.block[0]);
}

TEST_CASE(
    "A hot launch is one driver call and no allocation, and so is finding its plan but for the device") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.param_count = 1;
  fake.param_bytes[0] = sizeof(SkinnyGemmArgs);
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  const SkinnyGemm request{.m = 1, .n = 8, .k = 64};
  alignas(16) std::uint16_t x[64], w[8 * 64], y[8];
  const SkinnyGemm::Args args{.x = x, .w = w, .y = y};
  const TypedPlan<SkinnyGemm> plan = engine.plan(request, k_stream);
  plan.launch(k_stream, args);

  int calls = fake.calls;
  std::size_t allocations = allocations_of_this_thread();
  plan.launch(k_stream, args);
  CHECK(allocations_of_this_thread() == allocations);
  CHECK(fake.calls == calls + 1);
  CHECK(fake.launches == 2);

  calls = fake.calls;
  allocations = allocations_of_this_thread();
  const TypedPlan<SkinnyGemm> again = engine.plan(request, k_stream);
  CHECK(allocations_of_this_thread() == allocations);
  CHECK(fake.calls == calls + 2);  // cuCtxGetCurrent, cuCtxGetDevice
  CHECK(again.share() == plan.share());
}

TEST_CASE("Two devices of one architecture share the code, and each is made ready") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.device_count = 2;
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  add_offset(engine);
  const auto first = engine.plan(Offset{.n = 10});
  fake.set_current(1);
  const auto second = engine.plan(Offset{.n = 10});
  CHECK(engine.stats().compiled == 1);
  CHECK(fake.loads == 1);
  CHECK(fake.prepared[0] == 1);
  CHECK(fake.prepared[1] == 1);
  CHECK(first.share() != second.share());
  CHECK(first.state().kernel == second.state().kernel);
  fake.set_current(0);
  CHECK(engine.plan(Offset{.n = 10}).share() == first.share());
}

TEST_CASE("Devices of different architectures get code of their own") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.device_count = 3;
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  add_offset(engine);
  const auto hopper = engine.plan(Offset{.n = 10});
  fake.set_current(2);
  const auto ampere = engine.plan(Offset{.n = 10});
  CHECK(engine.current_device().facts().target.arch == "sm_80");
  CHECK(engine.stats().compiled == 2);
  CHECK(fake.loads == 2);
  CHECK(hopper.state().key != ampere.state().key);
}

TEST_CASE("A thread without a context uses the device of the options") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.device_count = 2;
  const TempDir cache;
  Options options = fake_cuda_options(cache.path().string());
  options.device = 1;
  Engine engine(options);
  add_offset(engine);
  fake.set_current(-1);
  CHECK(engine.plan(Offset{.n = 10}));
  CHECK(fake.prepared[0] == 0);
  CHECK(fake.prepared[1] == 1);
  CHECK(engine.current_device().facts().name == "Fake GPU 1");
}

TEST_CASE("Threads that plan one cold kernel share one compile and one load [tsan]") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  add_offset(engine);
  std::latch start(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      fake.set_current(0);
      start.arrive_and_wait();
      engine.plan(Offset{.n = 10});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(engine.stats().compiled == 1);
  CHECK(fake.loads == 1);
}

TEST_CASE("Code is unloaded when the last plan and the engine are gone") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  float x = 0;
  {
    Plan plan;
    {
      Engine engine(fake_cuda_options(cache.path().string()));
      add_offset(engine);
      plan = engine.plan(offset_request(10));
    }
    CHECK(fake.unloads == 0);
    plan.launch(nullptr, plan.state().selection.shape, &x, static_cast<const float*>(&x), 1.0f, 10);
    CHECK(fake.launches == 1);
  }
  CHECK(fake.unloads == 1);
}

TEST_CASE("Device memory is the driver's, and copies are complete when they return") {
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  Device& device = engine.current_device();
  const std::uint32_t sent = 0x12345678;
  std::uint32_t received = 0;
  {
    const Buffer buffer(device, sizeof(sent));
    device.copy_in(buffer.data(), &sent, sizeof(sent));
    device.copy_out(&received, buffer.data(), sizeof(received));
  }
  device.synchronize();
  CHECK(received == sent);
  CHECK(fake.synchronizations == 1);
  CHECK(Buffer(device, 0).data() == nullptr);
}

TEST_CASE("A device reports itself, and a hidden clock is that of its architecture") {
  fresh_fake_cuda();
  const TempDir cache;
  Engine engine(fake_cuda_options(cache.path().string()));
  const DeviceFacts& facts = engine.current_device().facts();
  CHECK(facts.name == "Fake GPU 0");
  CHECK(facts.multiprocessors == 132);
  CHECK(facts.l2_bytes == 60u << 20);
  CHECK(facts.shared_bytes_per_block == 232448);
  CHECK(facts.memory_gb_per_s == doctest::Approx(0.93 * 4917).epsilon(0.001));
  CHECK(facts.clock_ghz == device_profile("h200").clock_ghz);
}

TEST_SUITE_END();

}  // namespace jitsmith
