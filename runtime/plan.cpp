#include <jitsmith/runtime/plan.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace jitsmith {

void Plan::refuse_empty() {
  throw InvalidRequest("this plan was never made; assign it from Engine::plan() first");
}

void Plan::check_sizes(const std::size_t* sizes, std::size_t count) const {
  if (state().kernel == nullptr)
    throw InvalidRequest("this plan has no kernel to launch; test the plan before launching it");
  const std::vector<std::uint32_t>& wanted = state_->facts.param_bytes;
  if (count != wanted.size() || !std::equal(wanted.begin(), wanted.end(), sizes))
    throw InvalidRequest(fmt::format(
        "kernel {} takes parameters of {} bytes, but was given {} bytes; pass the types that it declares",
        state_->facts.lowered_name, fmt::join(wanted, ", "), fmt::join(sizes, sizes + count, ", ")));
}

}  // namespace jitsmith
