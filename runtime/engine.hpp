// Engine: from a request to a plan. It owns the cache, the compilers, the loaded kernels and the counters;
// there is no global state, and two engines know nothing of each other. Every member function is thread safe.
//
// On the host target a forked child may go on using an engine. On a GPU it can't, for no CUDA context
// survives a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/key.hpp>
#include <jitsmith/runtime/device.hpp>
#include <jitsmith/runtime/lookup.hpp>
#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/options.hpp>
#include <jitsmith/runtime/plan.hpp>
#include <jitsmith/runtime/plan_table.hpp>
#include <jitsmith/runtime/request.hpp>
#include <jitsmith/runtime/selection.hpp>

namespace jitsmith {

struct EngineStats {
  std::uint64_t plans = 0;             // distinct requests planned
  std::uint64_t compiled = 0;          // binaries compiled
  std::uint64_t loaded_from_disk = 0;  // binaries taken from the cache
};

class Engine {
 public:
  explicit Engine(Options options = Options::from_environment());
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Registers a user's op; the built-in ones were registered the same way. Throws InvalidRequest for a name
  // in use or an incomplete op.
  void add(Op op);

  // Selects, compiles if need be, loads, and remembers. The device is that of the calling thread's current
  // context, and the code is made ready in it; another context of that device loads it at its first launch.
  // Throws InvalidRequest, CompileError, DriverError, NotCached (policy, NoCompileScope, or `stream` is being
  // captured and the plan is not ready). Without `stream`, only a capture that the legacy default stream
  // notices is seen. A second call with an equal request finds the plan, also during capture: a typed one in
  // about 100 ns without allocating, an untyped one in microseconds. `forced` overrides selection for this
  // call.
  Plan plan(const Request& request, Stream stream = nullptr, const std::optional<ForcedChoice>& forced = {});

  template <class R>
  TypedPlan<R> plan(const R& request, Stream stream = nullptr) {
    Device& device = current_device();
    const PlanKey key = plan_key(request, &device);
    if (const auto* known = plans_.find(key)) return {Plan(*known), request};
    return {remember(key, plan_on(device, {std::string(R::k_op), params_of(request)}, stream, {})), request};
  }

  // What plans of declined requests of op R::k_op run instead: called with the request and the arguments as
  // given. Register it once, before planning; a second one is refused.
  template <class R, class F>
  void set_original(F kernel) {
    set_original_kernel(
        R::k_op, [kernel = std::move(kernel)](Stream stream, const void* request, const void* args) {
          kernel(stream, *static_cast<const R*>(request), *static_cast<const typename R::Args*>(args));
        });
  }

  // The decision alone, for the current device or for the given facts. Touches no cache and compiles nothing.
  Selection explain(const Request& request, const DeviceFacts& device,
                    const std::optional<ForcedChoice>& forced = {}) const;

  // Makes sure that the cache holds what `request` needs on `device`; needs no GPU. Where it may not compile
  // it throws NotCached instead. Returns where it was or that it was compiled; `none` for a request that
  // needs no kernel.
  BinarySource warm(const Request& request, const DeviceFacts& device);

  // The same for one variant with complete parameters.
  BinarySource warm(const Variant& variant, const Params& params, const Target& target);

  // Where the cache has one variant with complete parameters: what warm() answers under the policy
  // cached_only, but `none` for a miss, which costs no more than a hit. Nothing is compiled or recorded,
  // whatever the policy and scopes say. Throws InvalidRequest, and CompileError when there is no compiler to
  // key by.
  BinarySource find(const Variant& variant, const Params& params, const Target& target);

  // What the cache has for one variant, and why it is not more. Needs no GPU and no compiler, and changes
  // nothing, but that what only the remote tier has is copied to the directory, as for a launch, unless
  // Options::look_only is set. Reads every entry of the directory and the bundles, unless that was done a
  // moment ago; what is stored meanwhile may not be seen.
  Lookup look_up(const Variant& variant, const Params& params, const Target& target);

  // The key under which the cache has that binary. Needs the compiler's identity and no compile: throws
  // CompileError when there is no compiler.
  Key key(const Variant& variant, const Params& params, const Target& target) const;

  // Compiles one variant, past the cache, policy and scopes: for tests and benches.
  Binary compile(const Variant& variant, const Params& params, const Target& target);

  const Op& op(std::string_view name) const;  // throws InvalidRequest that lists the names
  std::vector<const Op*> ops() const;

  // The device of the calling thread's current CUDA context; throws DriverError when there is none.
  Device& current_device();

  const Options& options() const;
  Cache& cache();
  NvrtcCompiler& nvrtc();
  HostCompiler& host_compiler();
  EngineStats stats() const;

 private:
  friend class NoCompileScope;
  struct State;

  Plan plan_on(Device& device, const Request& request, Stream stream,
               const std::optional<ForcedChoice>& forced);
  Plan remember(const PlanKey& key, Plan plan);
  void set_original_kernel(std::string_view op, OriginalKernel kernel);

  std::unique_ptr<State> state_;
  PlanTable plans_;
};

// While one lives, its engine's plan() and warm() refuse to compile or load anything (NotCached): around a
// timed or captured region, or for good once start-up is over. Plans that are ready go on working.
class NoCompileScope {
 public:
  explicit NoCompileScope(Engine& engine);
  ~NoCompileScope();
  NoCompileScope(const NoCompileScope&) = delete;
  NoCompileScope& operator=(const NoCompileScope&) = delete;

 private:
  Engine& engine_;
};

}  // namespace jitsmith
