// What the CUDA path refuses, and how it says so: capture, policies, drivers that are missing, old or in
// trouble.
#include <jitsmith/runtime/engine.hpp>

#include <doctest/doctest.h>

#include "support/fake_driver.hpp"
#include "support/message_of.hpp"
#include "support/offset_run.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

const Stream k_stream = reinterpret_cast<Stream>(0x51);

// On the fake driver.
struct Bench : OffsetBench {
  explicit Bench(const TempDir& cache, const Change& change = {})
      : OffsetBench(fake_cuda_options(cache.path().string()), change) {}
};

std::string refusal(Engine& engine, Stream stream = nullptr) {
  return message_of<NotCached>([&] { engine.plan(offset_request(10), stream); });
}

void check_names_kernel_and_remedy(const std::string& message) {
  CAPTURE(message);
  CHECK(contains(message, "mine/offset.cu mine::offset<64> for sm_90a"));
  CHECK(contains(message, "`jitsmith warm offset --set n=10 --set variant=plain:threads=64 --arch sm_90a`"));
}

std::string open_failure(const std::function<void(Options&)>& change) {
  const TempDir cache;
  Bench bench(cache, change);
  return message_of<DriverError>([&] { bench.engine.plan(offset_request(10)); });
}

}  // namespace

TEST_SUITE_BEGIN("Engine on CUDA: refusals");

TEST_CASE("Nothing is compiled or loaded while the stream is captured, and ready plans are found") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench bench(cache);
  fake.capturing = k_stream;
  const std::string message = refusal(bench.engine, k_stream);
  check_names_kernel_and_remedy(message);
  CHECK(contains(message, "the stream is being captured"));
  CHECK(contains(refusal(bench.engine, nullptr), "the stream is being captured"));  // the legacy stream
  CHECK(bench.engine.stats().compiled == 0);
  CHECK(fake.loads == 0);

  const Stream other = reinterpret_cast<Stream>(0x52);
  const auto ready = bench.engine.plan(Offset{.n = 10}, other);
  CHECK(bench.engine.plan(Offset{.n = 10}, k_stream).share() == ready.share());
  CHECK(bench.engine.plan(offset_request(10), k_stream).state().source == BinarySource::memory);
  float x = 0;
  ready.launch(k_stream, {&x, &x, 1});
  CHECK(fake.launches == 1);
}

TEST_CASE("Code that another device loaded is not made ready while the stream is captured") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  fake.device_count = 2;
  const TempDir cache;
  Bench bench(cache);
  bench.engine.plan(offset_request(10));
  fake.set_current(1);
  fake.capturing = k_stream;
  CHECK(contains(refusal(bench.engine, k_stream), "the stream is being captured"));
  CHECK(fake.prepared[1] == 0);
}

TEST_CASE("A NoCompileScope forbids compiles and loads while it lives") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench bench(cache);
  {
    const NoCompileScope outer(bench.engine);
    { const NoCompileScope inner(bench.engine); }
    const std::string message = refusal(bench.engine);
    check_names_kernel_and_remedy(message);
    CHECK(contains(message, "a NoCompileScope forbids compiling and loading"));
    CHECK(fake.loads == 0);
  }
  CHECK(bench.engine.plan(offset_request(10)));
  const NoCompileScope again(bench.engine);
  CHECK(bench.engine.plan(offset_request(10)));
}

TEST_CASE("The policy cached_only takes what is cached and compiles nothing") {
  if (!have_nvrtc()) return;
  fresh_fake_cuda();
  const TempDir cache;
  Bench strict(cache, [](Options& options) { options.policy = Policy::cached_only; });
  const std::string message = refusal(strict.engine);
  check_names_kernel_and_remedy(message);
  CHECK(contains(message, "the policy is cached_only"));
  Bench(cache).engine.warm(offset_request(10), device_profile("h200"));
  CHECK(strict.engine.plan(offset_request(10)).state().source == BinarySource::disk);
  CHECK(strict.engine.stats().compiled == 0);
}

TEST_CASE("F41: A cached kernel that the driver refuses is dropped and compiled again, once") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench(cache).engine.plan(offset_request(10));
  fake.load_result = CUDA_ERROR_INVALID_IMAGE;
  fake.failing_loads = 1;
  Bench bench(cache);
  CHECK(bench.engine.plan(offset_request(10)).state().source == BinarySource::compiled);
  CHECK(bench.events.count("cache.refused_by_driver") == 1);
  CHECK(bench.engine.stats().compiled == 1);
  CHECK(Bench(cache).engine.plan(offset_request(10)).state().source == BinarySource::disk);
}

TEST_CASE("A driver that refuses fresh code too is said to be too old") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench(cache).engine.plan(offset_request(10));
  fake.version = 12080;
  fake.load_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  fake.failing_loads = 2;
  Bench bench(cache);
  CHECK(message_of<DriverError>([&] { bench.engine.plan(offset_request(10)); }) ==
        "the driver, of CUDA 12.8, refuses code compiled for sm_90a; use an NVRTC no newer than the driver "
        "(JITSMITH_NVRTC), or update the driver");
  CHECK(bench.engine.stats().compiled == 1);
  // Not remembered: the driver may be in a passing state.
  CHECK(bench.engine.plan(offset_request(10)));
}

TEST_CASE("Under cached_only a refused kernel is an error, and its entry stays") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench(cache).engine.plan(offset_request(10));
  fake.load_result = CUDA_ERROR_INVALID_IMAGE;
  fake.failing_loads = 1;
  Bench strict(cache, [](Options& options) { options.policy = Policy::cached_only; });
  CHECK_THROWS_AS(strict.engine.plan(offset_request(10)), DriverError);
  CHECK(strict.engine.plan(offset_request(10)).state().source == BinarySource::disk);
}

TEST_CASE("A kernel that takes other parameters than its facts say is refused") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench bench(cache);
  // One that takes more is not seen: to ask for a parameter that is not there is an error that tools report.
  fake.param_count = 3;
  CHECK(contains(message_of<DriverError>([&] { bench.engine.plan(offset_request(10)); }),
                 "was loaded with other parameters than it was compiled with"));
  fake.param_count = 4;
  fake.param_bytes[2] = 8;
  CHECK_THROWS_AS(bench.engine.plan(offset_request(10)), DriverError);
  CHECK(fake.unloads == fake.loads);
}

TEST_CASE("A kernel that the code lacks is an error, and the code is unloaded") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench bench(cache);
  fake.get_kernel_result = CUDA_ERROR_NOT_FOUND;
  const std::string message = message_of<DriverError>([&] { bench.engine.plan(offset_request(10)); });
  CHECK(contains(
      message,
      "cuLibraryGetKernel failed with CUDA_ERROR_500 (as the test wants it) on Fake GPU 0, kernel _Z"));
  CHECK(fake.unloads == 1);
}

TEST_CASE("A launch that fails says which kernel") {
  if (!have_nvrtc()) return;
  FakeCuda& fake = fresh_fake_cuda();
  const TempDir cache;
  Bench bench(cache);
  const auto plan = bench.engine.plan(Offset{.n = 10});
  fake.launch_result = CUDA_ERROR_INVALID_VALUE;
  float x = 0;
  try {
    plan.launch(k_stream, {&x, &x, 1});
    FAIL_CHECK("nothing was thrown");
  } catch (const DriverError& error) {
    CHECK(contains(error.what(), "cuLaunchKernelEx failed with CUDA_ERROR_1 (as the test wants it)"));
    CHECK(contains(error.what(), plan.state().facts.lowered_name));
    CHECK(error.code == CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("A machine without a GPU, without a driver or with another library says what is missing") {
  FakeCuda& fake = fresh_fake_cuda();
  fake.device_count = 0;
  CHECK(contains(open_failure({}), "the driver sees no GPU; check CUDA_VISIBLE_DEVICES"));
  fresh_fake_cuda().init_result = CUDA_ERROR_NO_DEVICE;
  CHECK(contains(open_failure({}), "cuInit failed with CUDA_ERROR_100"));
  fresh_fake_cuda();
  const std::string missing =
      open_failure([](Options& options) { options.driver_path = "/nowhere/libcuda.so.1"; });
  CHECK(contains(missing, "no GPU driver: /nowhere/libcuda.so.1: cannot open shared object file"));
  CHECK(contains(missing, "install the NVIDIA driver, or run on the host target"));
  CHECK(open_failure([](Options& options) { options.driver_path = "libm.so.6"; }) ==
        "the GPU driver libm.so.6 has no cuInit; install a driver of CUDA 12.4 or later");
}

TEST_CASE("A device number beyond the GPUs there are is refused") {
  FakeCuda& fake = fresh_fake_cuda();
  fake.set_current(-1);
  CHECK(contains(open_failure([](Options& options) { options.device = 1; }),
                 "cuDeviceGet failed with CUDA_ERROR_101"));
  CHECK(contains(open_failure([](Options& options) { options.device = 64; }), "device 64 is beyond the 64"));
}

TEST_CASE("Without a driver, decisions and warming still work") {
  if (!have_nvrtc()) return;
  const TempDir cache;
  Bench bench(cache, [](Options& options) { options.driver_path = "/nowhere/libcuda.so.1"; });
  CHECK(bench.engine.explain(offset_request(10), device_profile("h200")).variant != nullptr);
  CHECK(bench.engine.warm(offset_request(10), device_profile("h200")) == BinarySource::compiled);
  CHECK(bench.engine.warm(offset_request(0), device_profile("h200")) == BinarySource::none);
}

TEST_SUITE_END();

}  // namespace jitsmith
