#include <jitsmith/runtime/host_executor.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/templates/device/host_api.h>
#include <jitsmith/runtime/fiber_cluster.hpp>
#include <jitsmith/runtime/random_order.hpp>
#include <jitsmith/runtime/shared_object.hpp>

namespace jitsmith {
namespace {

constexpr std::uint32_t k_max_block_threads = 1024;
constexpr std::uint32_t k_max_cluster = 8;  // that every architecture with clusters has

using Extent = std::array<std::uint32_t, 3>;

std::uint64_t volume(const Extent& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}

class HostKernel : public LoadedKernel {
 public:
  HostKernel(const Binary& binary, const HostExecutorOptions& options)
      : object_(binary.code, options.temp_directory),
        kernel_(static_cast<const JitsmithHostKernel*>(object_.symbol(binary.facts.lowered_name))),
        seed_(options.seed) {
    if (kernel_ == nullptr)
      throw HostKernelError(
          fmt::format("the host kernel does not export {}; compile it again", binary.facts.lowered_name));
    if (kernel_->api_version != JITSMITH_HOST_API_VERSION)
      throw HostKernelError(
          fmt::format("the host kernel has interface version {} and this library {}; compile it again",
                      kernel_->api_version, JITSMITH_HOST_API_VERSION));
    if (!std::ranges::equal(std::span(kernel_->param_bytes, kernel_->param_count), binary.facts.param_bytes))
      throw HostKernelError(fmt::format(
          "{} has parameters of [{}] bytes, but its facts say [{}]; compile it again", kernel_->name,
          fmt::join(kernel_->param_bytes, kernel_->param_bytes + kernel_->param_count, ", "),
          fmt::join(binary.facts.param_bytes, ", ")));
    kernel_->attach(&host_api());
  }

  void launch(Stream /*stream*/, const LaunchShape& shape, void* const* args) const override {
    if (volume(shape.block) == 0 || volume(shape.block) > k_max_block_threads || volume(shape.grid) == 0)
      throw HostKernelError(fmt::format(
          "{}: a grid of ({}) blocks of ({}) threads cannot run; a block has 1 to {} threads "
          "and no extent is 0",
          kernel_->name, fmt::join(shape.grid, ", "), fmt::join(shape.block, ", "), k_max_block_threads));
    if (shape.cluster == 0 || shape.cluster > k_max_cluster || shape.grid[0] % shape.cluster != 0)
      throw HostKernelError(fmt::format(
          "{}: a grid of {} blocks in x cannot be cut into clusters of {}; a cluster has 1 to {} blocks and "
          "the grid is a multiple of it",
          kernel_->name, shape.grid[0], shape.cluster, k_max_cluster));
    FiberCluster cluster(stacks_, *kernel_, shape, args);
    RandomOrder order(seed_);
    const std::uint64_t count = volume(shape.grid) / shape.cluster;
    std::vector<std::uint64_t> clusters;
    if (seed_ != 0) {
      clusters.resize(count);
      std::iota(clusters.begin(), clusters.end(), std::uint64_t{0});
      order.shuffle(std::span(clusters));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = (clusters.empty() ? i : clusters[i]) * shape.cluster;
      const std::uint64_t row = number / shape.grid[0];
      cluster.run(
          {static_cast<std::uint32_t>(number % shape.grid[0]),
           static_cast<std::uint32_t>(row % shape.grid[1]), static_cast<std::uint32_t>(row / shape.grid[1])},
          seed_ == 0 ? nullptr : &order);
    }
  }

 private:
  SharedObject object_;
  const JitsmithHostKernel* kernel_;
  std::uint64_t seed_;
  mutable StackPool stacks_;
};

}  // namespace

std::shared_ptr<const LoadedKernel> load_host_kernel(const Binary& binary,
                                                     const HostExecutorOptions& options) {
  try {
    return std::make_shared<HostKernel>(binary, options);
  } catch (const HostKernelError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw HostKernelError(
        fmt::format("cannot load the host kernel: {}; a kernel built with sanitizers needs a program "
                    "built with the same ones",
                    error.what()));
  }
}

}  // namespace jitsmith
