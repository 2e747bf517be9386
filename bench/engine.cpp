// What the engine itself costs: compiling, starting from a warm cache, finding a plan, launching it.
//
//   bench_engine REQUESTS.json
//
// Without a GPU it measures compiling alone. Each figure is a median; what is compared is measured in
// alternation.
#include <algorithm>
#include <chrono>
#include <set>

#include <dlfcn.h>
#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/request_file.hpp>

#include "cuda_graphs.hpp"

namespace jitsmith::bench {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

template <class F>
double microseconds(F&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The distinct specialisations that the requests of the file are dispatched to, by a request for each.
std::vector<SkinnyGemm> distinct_requests(const Engine& engine, const std::string& file,
                                          const DeviceFacts& device) {
  const Op& op = engine.op(SkinnyGemm::k_op);
  std::set<std::string> seen;
  std::vector<SkinnyGemm> requests;
  for (const RawRequest& raw : RequestFile::read(file).requests) {
    const Params request = op.request.complete(raw.typed(op.request, file), op.name);
    const Selection selection = engine.explain({op.name, request}, device);
    if (selection.variant != nullptr &&
        seen.insert(selection.variant->name + to_string(selection.params)).second)
      requests.push_back(skinny_gemm_from(request));
  }
  return requests;
}

void measure_compiles(const std::string& file) {
  Engine engine;
  const DeviceFacts& h200 = device_profile("h200");
  std::vector<double> ms;
  double first = 0;
  for (const SkinnyGemm& request : distinct_requests(engine, file, h200)) {
    const Selection selection = engine.explain({std::string(SkinnyGemm::k_op), params_of(request)}, h200);
    const double took =
        microseconds([&] { engine.compile(*selection.variant, selection.params, h200.target); }) / 1e3;
    if (first == 0)
      first = took;
    else
      ms.push_back(took);
  }
  fmt::print(
      "compile, sm_90a, NVRTC {}: first {:.0f} ms, then median {:.1f} ms, slowest {:.1f} ms of {} "
      "specialisations\n",
      engine.nvrtc().version(), first, median(ms), ms.empty() ? 0 : *std::ranges::max_element(ms), ms.size());
}

// The driver's own part of loading: the same code, loaded and made ready by hand.
class RawLoad {
 public:
  RawLoad() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    load_ = reinterpret_cast<decltype(load_)>(dlsym(library, "cuLibraryLoadData"));
    unload_ = reinterpret_cast<decltype(unload_)>(dlsym(library, "cuLibraryUnload"));
    kernel_ = reinterpret_cast<decltype(kernel_)>(dlsym(library, "cuLibraryGetKernel"));
    function_ = reinterpret_cast<decltype(function_)>(dlsym(library, "cuKernelGetFunction"));
    launch_ = reinterpret_cast<decltype(launch_)>(dlsym(library, "cuLaunchKernelEx"));
  }

  CUlibrary load(const Binary& binary, CUkernel& kernel) const {
    CUlibrary library = nullptr;
    CUfunction function = nullptr;
    CudaGraphs::check(load_(&library, binary.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                      "cuLibraryLoadData");
    CudaGraphs::check(kernel_(&kernel, library, binary.facts.lowered_name.c_str()), "cuLibraryGetKernel");
    CudaGraphs::check(function_(&function, kernel), "cuKernelGetFunction");
    return library;
  }
  void unload(CUlibrary library) const { unload_(library); }

  void launch(CUstream stream, CUkernel kernel, const LaunchShape& shape, void** args) const {
    const CUlaunchConfig config{.gridDimX = shape.grid[0],
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = shape.block[0],
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .sharedMemBytes = 0,
                                .hStream = stream,
                                .attrs = nullptr,
                                .numAttrs = 0};
    CudaGraphs::check(launch_(&config, reinterpret_cast<CUfunction>(kernel), args, nullptr),
                      "cuLaunchKernelEx");
  }

 private:
  decltype(&::cuLibraryLoadData) load_;
  decltype(&::cuLibraryUnload) unload_;
  decltype(&::cuLibraryGetKernel) kernel_;
  decltype(&::cuKernelGetFunction) function_;
  decltype(&::cuLaunchKernelEx) launch_;
};

// From a warm disk entry to launch-ready, beside the driver's own load of the same code.
void measure_warm_start(const std::string& file, const RawLoad& raw) {
  Engine cold;
  const DeviceFacts device = cold.current_device().facts();
  const std::vector<SkinnyGemm> requests = distinct_requests(cold, file, device);
  for (const SkinnyGemm& request : requests) cold.plan(request);  // fills the cache

  Engine warm;
  Buffer context(warm.current_device(), 256);
  std::vector<double> ours, drivers;
  for (const SkinnyGemm& request : requests) {
    const Selection selection = warm.explain({std::string(SkinnyGemm::k_op), params_of(request)}, device);
    const Binary binary = warm.compile(*selection.variant, selection.params, device.target);
    CUkernel kernel = nullptr;
    CUlibrary library = nullptr;
    drivers.push_back(microseconds([&] { library = raw.load(binary, kernel); }));
    raw.unload(library);
    BinarySource source = BinarySource::none;
    ours.push_back(microseconds([&] { source = warm.plan(request).state().source; }));
    if (source != BinarySource::disk) throw std::runtime_error("a warm plan did not come from the disk");
  }
  fmt::print(
      "warm disk entry to launch-ready: {:.0f} us, the driver's own load {:.0f} us, beyond it {:.0f} us ({} "
      "plans)\n",
      median(ours), median(drivers), median(ours) - median(drivers), ours.size());
}

void measure_look_up_and_launch(const RawLoad& raw, const CudaGraphs& cuda) {
  constexpr int k_look_ups = 100000, k_launches = 300, k_rounds = 31;
  Engine engine;
  Device& device = engine.current_device();
  const SkinnyGemm request{.m = 1, .n = 64, .k = 512};
  const TypedPlan<SkinnyGemm> plan = engine.plan(request);
  Buffer x(device, 1024), w(device, 64 * 1024), y(device, 128);
  const SkinnyGemm::Args args{.x = x.data(), .w = w.data(), .y = y.data()};

  std::vector<double> look_up_ns;
  for (int round = 0; round < k_rounds; ++round)
    look_up_ns.push_back(1e3 / k_look_ups * microseconds([&] {
                           for (int i = 0; i < k_look_ups; ++i)
                             if (!engine.plan(request)) throw std::runtime_error("the plan is gone");
                         }));
  fmt::print("plan look-up: {:.0f} ns\n", median(look_up_ns));

  const Binary binary =
      engine.compile(*plan.state().selection.variant, plan.state().selection.params, device.facts().target);
  CUkernel kernel = nullptr;
  raw.load(binary, kernel);
  // All zero, so k = 0 and null pointers: the raw kernel reads and writes nothing, and costs the host the
  // same.
  std::vector<std::byte> packed(binary.facts.param_bytes.at(0));
  void* raw_args[] = {packed.data()};
  CUstream stream = nullptr;
  CudaGraphs::check(cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  // Few enough launches that the queue never fills; the same kernel and shape on both sides.
  plan.launch(stream, args);
  device.synchronize();
  std::vector<double> ours, theirs;
  for (int round = -3; round < k_rounds; ++round) {
    const double us = microseconds([&] {
      for (int i = 0; i < k_launches; ++i) plan.launch(stream, args);
    });
    device.synchronize();
    const double raw_us = microseconds([&] {
      for (int i = 0; i < k_launches; ++i) raw.launch(stream, kernel, plan.state().selection.shape, raw_args);
    });
    device.synchronize();
    if (round < 0) continue;
    ours.push_back(us * 1e3 / k_launches);
    theirs.push_back(raw_us * 1e3 / k_launches);
  }
  fmt::print("launch: {:.0f} ns, raw cuLaunchKernelEx {:.0f} ns, beyond it {:.0f} ns\n", median(ours),
             median(theirs), median(ours) - median(theirs));
}

void run(const std::string& file) {
  measure_compiles(file);
  try {
    const CudaGraphs cuda;
    Engine probe;
    fmt::print("{}\n", probe.current_device().facts().name);
    const RawLoad raw;
    measure_warm_start(file, raw);
    measure_look_up_and_launch(raw, cuda);
  } catch (const DriverError& error) {
    fmt::print("the rest needs a GPU: {}\n", error.what());
  }
}

}  // namespace
}  // namespace jitsmith::bench

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw jitsmith::InvalidRequest("give a request file, such as bench/skinny_gemm.json");
    jitsmith::bench::run(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_engine: {}\n", error.what());
    return 1;
  }
}
