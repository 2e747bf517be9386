// Plan: a request with everything resolved: kernel loaded, launch shape fixed. An immutable handle, cheap to
// copy, valid as long as a copy lives, also after its Engine is gone; every member is thread safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/jit/binary.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/runtime/binary_source.hpp>
#include <jitsmith/runtime/launch_shape.hpp>
#include <jitsmith/runtime/loaded_kernel.hpp>
#include <jitsmith/runtime/selection.hpp>
#include <jitsmith/runtime/stream.hpp>

namespace jitsmith {

// Called instead of a kernel for a declined request: `request` and `args` are the op's own types.
using OriginalKernel = std::function<void(Stream stream, const void* request, const void* args)>;

struct PlanState {
  std::string op;
  Params request;       // complete
  Selection selection;  // `selection.variant` points into the op, which `owner` keeps alive
  Digest key;
  KernelFacts facts;
  BinarySource source = BinarySource::none;
  std::shared_ptr<const LoadedKernel> kernel;  // null when there is nothing to launch
  std::shared_ptr<const OriginalKernel> original;
  std::shared_ptr<const void> owner;
};

class Plan {
 public:
  Plan() = default;
  explicit Plan(std::shared_ptr<const PlanState> state) : state_(std::move(state)) {}

  // False when the request was declined: keep your own kernel. reason() says why.
  explicit operator bool() const {
    return state_ != nullptr && state_->selection.verdict.kind != Verdict::decline;
  }
  std::string reason() const { return state().selection.verdict.reason; }

  // Throws InvalidRequest for a plan that was never made.
  const PlanState& state() const {
    if (state_ == nullptr) refuse_empty();
    return *state_;
  }
  const std::shared_ptr<const PlanState>& share() const { return state_; }

  // Launches with the kernel's own parameters, one argument each. Their number and sizes are checked against
  // the kernel. Enqueues on `stream`; neither locks, allocates, hashes nor asks the driver for anything.
  template <class... Args>
  void launch(Stream stream, const LaunchShape& shape, const Args&... args) const {
    static_assert((std::is_trivially_copyable_v<Args> && ...), "kernel parameters are copied byte by byte");
    constexpr std::size_t k_sizes[] = {sizeof(Args)..., 0};
    check_sizes(k_sizes, sizeof...(Args));
    const void* pointers[] = {static_cast<const void*>(&args)..., nullptr};
    state_->kernel->launch(stream, shape, const_cast<void* const*>(pointers));
  }

 private:
  void check_sizes(const std::size_t* sizes, std::size_t count) const;
  [[noreturn]] static void refuse_empty();

  std::shared_ptr<const PlanState> state_;
};

// A plan of one op with typed arguments. `R` is the op's request type:
//   R::k_op                          the op's name
//   R::Args                          what a launch takes
//   R::visit(f)                      f(name, field) for every field, in the order of the op's request schema
//   R::run(const Plan&, Stream, const R&, const Args&)   checks the arguments and launches
template <class R>
class TypedPlan : public Plan {
 public:
  TypedPlan() = default;
  TypedPlan(Plan plan, R request) : Plan(std::move(plan)), request_(std::move(request)) {}

  const R& request() const { return request_; }

  // Does nothing for an empty output; calls the original kernel for a declined request, when one was
  // registered.
  void launch(Stream stream, const typename R::Args& args) const {
    const PlanState& plan = state();
    if (plan.kernel != nullptr) return R::run(*this, stream, request_, args);
    if (plan.selection.verdict.kind == Verdict::nothing_to_do) return;
    if (plan.original == nullptr)
      throw InvalidRequest(plan.selection.verdict.reason +
                           "; no original kernel is registered to run instead");
    (*plan.original)(stream, &request_, &args);
  }

 private:
  R request_;
};

}  // namespace jitsmith
