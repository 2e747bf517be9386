#include <jitsmith/runtime/engine.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/binaries.hpp>
#include <jitsmith/runtime/builtin_ops.hpp>
#include <jitsmith/runtime/census.hpp>
#include <jitsmith/runtime/devices.hpp>
#include <jitsmith/runtime/recorder.hpp>
#include <jitsmith/runtime/single_flight.hpp>

namespace jitsmith {
namespace {

// Code that is ready to launch, and where it came from when it was loaded.
struct Loaded {
  std::shared_ptr<const LoadedKernel> kernel;
  KernelFacts facts;
  BinarySource source;
  Digest key;  // of the entry
};

// "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<...> for sm_90a with threads=128, tile_n=4 is not cached":
// the beginning of a NotCached message.
std::string not_cached(const KernelSource& kernel) {
  std::string params;
  for (const auto& [name, value] : kernel.params.items())
    params += fmt::format("{}{}={}", params.empty() ? " with " : ", ", name, to_string(value));
  return fmt::format("{}{} is not cached", kernel.describe(), params);
}

// What has to come before any warming: as things are set, it would keep nothing.
std::string_view allow_keeping(const Options& options) {
  if (options.cold) return "unset JITSMITH_COLD, which turns every tier off, and then ";
  if (!options.cache.enabled) return "turn the cache directory on (see JITSMITH_CACHE) and then ";
  return {};
}

// How to have in the cache what a refused plan lacks: the end of a NotCached message.
std::string warm_hint(const PlanState& plan, const Target& target) {
  std::string sets;
  for (const auto& [name, value] : plan.request.items())
    sets += fmt::format(" --set {}={}", name, to_string(value));
  // The variant by name: another machine of this architecture might select another one.
  sets += fmt::format(" --set variant={}:{}", plan.selection.variant->name, to_string(plan.selection.params));
  return fmt::format("warm the cache with `jitsmith warm {}{} --arch {}`", plan.op, sets, target.arch);
}

}  // namespace

struct Engine::State {
  explicit State(Options engine_options)
      : options(std::move(engine_options)),
        binaries(options),
        devices(options),
        recorder(real_file_system(), options.record, options.events) {
    std::vector<std::string> problems;
    if (!options.tuning_table.empty()) user_table = TuningTable::read(options.tuning_table, problems);
    shipped_table = builtin_tuning_table(problems);
    for (const std::string& problem : problems) tell(EventLevel::warning, "table.bad_line", problem);
    for (const auto& [op, text] : options.forced) forced.emplace(op, ForcedChoice::parse(text));
  }

  void tell(EventLevel level, std::string_view what, std::string text) const {
    if (options.events) options.events({level, what, std::move(text)});
  }

  std::shared_ptr<const Op> find_op(std::string_view name) const {
    const std::scoped_lock lock(ops_mutex);
    if (const auto place = ops.find(name); place != ops.end()) return place->second;
    std::string names;
    for (const auto& item : ops) names += (names.empty() ? "" : ", ") + item.first;
    throw InvalidRequest(fmt::format("there is no op '{}'; give one of {}", name, names));
  }

  std::shared_ptr<const OriginalKernel> find_original(std::string_view op) const {
    const std::scoped_lock lock(ops_mutex);
    const auto place = originals.find(op);
    return place == originals.end() ? nullptr : place->second;
  }

  SelectionInputs selection_inputs(std::string_view op, const std::optional<ForcedChoice>& forced_now) const {
    SelectionInputs inputs{.user_table = &user_table, .shipped_table = &shipped_table, .forced = forced_now};
    if (const auto place = forced.find(op); !inputs.forced && place != forced.end())
      inputs.forced = place->second;
    return inputs;
  }

  // Before anything can be refused: what a production policy forbids is what has to be warmed next time.
  void record(const Op& op, const Selection& selection, const Params& request, const Target& target) {
    recorder.record(op.name, target.arch, selection.variant->name, selection.params, &request);
  }

  // The same for a variant by itself. One that belongs to no op has no name to be recorded under.
  void record(const Variant& variant, const Params& complete, const Target& target) {
    std::string owner;
    {
      const std::scoped_lock lock(ops_mutex);
      for (const auto& [name, op] : ops)
        for (const Variant& own : op->variants)
          if (&own == &variant) owner = name;
    }
    if (!owner.empty()) recorder.record(owner, target.arch, variant.name, complete, nullptr);
  }

  BinarySource find(const KernelSource& kernel) {
    const auto cached = binaries.find(kernel);
    return cached ? cached->source : BinarySource::none;
  }

  BinarySource warm(const Variant& variant, const Params& complete, const Target& target) {
    const KernelSource kernel = binaries.specialize(variant.kernel, complete, target);
    const bool may_compile = no_compile_scopes == 0 && options.policy == Policy::compile;
    if (may_compile) return binaries.find_or_compile(kernel).source;
    if (const BinarySource cached = find(kernel); cached != BinarySource::none) return cached;
    if (no_compile_scopes > 0)
      throw NotCached(fmt::format("{} is not cached and a NoCompileScope forbids compiling; warm it before",
                                  kernel.describe()));
    throw NotCached(fmt::format("{} and the policy is cached_only; {}; {}allow compiling to warm it",
                                not_cached(kernel), holdings_for(kernel), allow_keeping(options)));
  }

  // cache -> compile -> load. A verified entry that the driver refuses is dropped and compiled once afresh.
  Loaded build(Device& device, const KernelSource& kernel, const PlanState& plan) {
    SourcedBinary sourced = obtain(kernel, plan);
    if (sourced.source != BinarySource::compiled) try {
        return {device.load(sourced.binary), sourced.binary.facts, sourced.source, sourced.key};
      } catch (const std::runtime_error& refusal) {
        if (options.policy == Policy::cached_only) throw;
        tell(EventLevel::warning, "cache.refused_by_driver",
             fmt::format("the cached code of {} was refused and is compiled again: {}", kernel.describe(),
                         refusal.what()));
        binaries.cache().remove(kernel.key.digest);
        sourced = {binaries.compile(kernel), BinarySource::compiled, kernel.key.digest};
      }
    return {device.load(sourced.binary), sourced.binary.facts, sourced.source, sourced.key};
  }

  SourcedBinary obtain(const KernelSource& kernel, const PlanState& plan) {
    if (options.policy == Policy::compile) return binaries.find_or_compile(kernel);
    if (auto cached = binaries.find(kernel)) return *std::move(cached);
    throw NotCached(fmt::format("{} and the policy is cached_only; {}; {}{}", not_cached(kernel),
                                holdings_for(kernel), allow_keeping(options),
                                warm_hint(plan, kernel.target)));
  }

  // Kept until there is another census, for a program may ask again at every step, and to compare with all
  // that is held takes long.
  std::string holdings_for(const KernelSource& kernel) {
    const std::string& key = kernel.key.text;
    const std::shared_ptr<const Census> census = binaries.census();
    std::string text = holdings.with([&](Holdings& known) {
      if (known.census != census) known = {census, {}};
      const auto place = known.texts.find(key);
      return place == known.texts.end() ? std::string() : place->second;
    });
    if (!text.empty()) return text;
    text = describe_holdings(*census, binaries.cache(), key_fields(key));
    holdings.with([&](Holdings& known) {
      if (known.census == census) known.texts.emplace(key, text);
    });
    return text;
  }

  void refuse_while_forbidden(Device& device, Stream stream, const KernelSource& kernel,
                              const PlanState& plan) {
    const char* why = no_compile_scopes.load(std::memory_order_relaxed) > 0
                          ? "a NoCompileScope forbids compiling and loading"
                      : device.capturing(stream) ? "the stream is being captured"
                                                 : nullptr;
    if (why != nullptr)
      throw NotCached(fmt::format("{} is not loaded and {}; plan it before, or {}", kernel.describe(), why,
                                  warm_hint(plan, kernel.target)));
  }

  const Options options;
  Binaries binaries;
  Devices devices;
  Recorder recorder;
  TuningTable user_table, shipped_table;
  std::map<std::string, ForcedChoice, std::less<>> forced;

  mutable ForkMutex ops_mutex;
  std::map<std::string, std::shared_ptr<const Op>, std::less<>> ops;
  std::map<std::string, std::shared_ptr<const OriginalKernel>, std::less<>> originals;

  // By key text and not by digest, which is only an address.
  SingleFlight<std::string, Loaded> loaded;

  // What a census says of kernels that are missing, by key text.
  struct Holdings {
    std::shared_ptr<const Census> census;
    std::map<std::string, std::string> texts;
  };
  ForkGuarded<Holdings> holdings;

  // Plans of untyped requests, by device, request and forced choice.
  ForkGuarded<std::map<std::string, Plan>> untyped;

  std::atomic<int> no_compile_scopes{0};
  std::atomic<std::uint64_t> plans{0};
};

Engine::Engine(Options options) : state_(std::make_unique<State>(std::move(options))) {
  for (Op& op : builtin_ops(state_->binaries.files())) add(std::move(op));
  // A user's op may still come, so an unknown name is no error.
  for (const auto& [name, choice] : state_->forced)
    if (!state_->ops.contains(name))
      state_->tell(EventLevel::warning, "forced.unknown_op",
                   fmt::format("variant {} is forced for op '{}', which is not a built-in one; correct the "
                               "name unless you add it",
                               choice.variant, name));
  const std::string& folder = state_->options.template_folder;
  if (std::error_code ignored; !folder.empty() && !std::filesystem::is_directory(folder, ignored))
    state_->tell(EventLevel::warning, "templates.no_folder",
                 fmt::format("template folder {} does not exist; the embedded templates are used", folder));
}

Engine::~Engine() = default;

// THE MAIN PATH: request -> select -> specialize -> key -> cache -> compile -> load -> (the plan's) launch.
Plan Engine::plan_on(Device& device, const Request& request, Stream stream,
                     const std::optional<ForcedChoice>& forced) {
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  auto plan = std::make_shared<PlanState>();
  plan->op = op->name;
  plan->owner = op;
  plan->original = state_->find_original(op->name);
  plan->request = op->request.complete(request.params, op->name);

  plan->selection = select(*op, plan->request, device.facts(), state_->selection_inputs(op->name, forced));
  if (plan->selection.verdict.kind != Verdict::serve) return Plan(std::move(plan));
  state_->record(*op, plan->selection, plan->request, device.facts().target);

  const KernelSource kernel = state_->binaries.specialize(plan->selection.variant->kernel,
                                                          plan->selection.params, device.facts().target);

  std::optional<Loaded> loaded = state_->loaded.find(kernel.key.text);
  plan->source = BinarySource::memory;
  // Another device of this architecture may have loaded it: here it still has to be prepared.
  const std::uint32_t shared_bytes = plan->selection.shape.dynamic_shared_bytes;
  if (!loaded || !device.prepared(*loaded->kernel, shared_bytes))
    state_->refuse_while_forbidden(device, stream, kernel, *plan);
  if (!loaded) {
    loaded = state_->loaded.get(kernel.key.text, [&] { return state_->build(device, kernel, *plan); });
    plan->source = loaded->source;
  }
  device.prepare(*loaded->kernel, shared_bytes);
  plan->kernel = loaded->kernel;
  plan->facts = loaded->facts;
  plan->key = loaded->key;
  ++state_->plans;
  return Plan(std::move(plan));
}

Plan Engine::plan(const Request& request, Stream stream, const std::optional<ForcedChoice>& forced) {
  Device& device = current_device();
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  const std::string key = fmt::format("{} {} {} {}", fmt::ptr(&device), op->name,
                                      to_string(op->request.complete(request.params, op->name)),
                                      forced ? to_string(*forced) : std::string());
  const std::optional<Plan> known = state_->untyped.with([&](const auto& untyped) {
    const auto place = untyped.find(key);
    return place == untyped.end() ? std::optional<Plan>() : place->second;
  });
  if (known) return *known;
  Plan plan = plan_on(device, request, stream, forced);
  return state_->untyped.with(
      [&](auto& untyped) { return untyped.emplace(key, std::move(plan)).first->second; });
}

Plan Engine::remember(const PlanKey& key, Plan plan) {
  // An original kernel may still be registered for it.
  if (!plan && plan.state().original == nullptr) return plan;
  return Plan(plans_.insert(key, plan.share()));
}

void Engine::add(Op op) {
  if (op.name.empty() || op.variants.empty() || op.variant(op.generic_variant) == nullptr ||
      !op.generic_params)
    throw InvalidRequest(fmt::format(
        "op '{}' is incomplete; give it a name, a variant and a generic variant with parameters", op.name));
  for (const Variant& variant : op.variants)
    if (!variant.shape)
      throw InvalidRequest(
          fmt::format("variant '{}' of op '{}' has no launch shape; give it one", variant.name, op.name));
  const std::scoped_lock lock(state_->ops_mutex);
  if (state_->ops.contains(op.name))
    throw InvalidRequest(fmt::format("there is already an op '{}'; choose another name", op.name));
  std::string name = op.name;
  state_->ops.emplace(std::move(name), std::make_shared<const Op>(std::move(op)));
}

void Engine::set_original_kernel(std::string_view op, OriginalKernel kernel) {
  state_->find_op(op);
  const std::scoped_lock lock(state_->ops_mutex);
  // Ready plans hold the one that they were made with: a second one would serve some and not others.
  if (!state_->originals.emplace(op, std::make_shared<const OriginalKernel>(std::move(kernel))).second)
    throw InvalidRequest(
        fmt::format("op '{}' has an original kernel already; register one, before planning", op));
}

Selection Engine::explain(const Request& request, const DeviceFacts& device,
                          const std::optional<ForcedChoice>& forced) const {
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  return select(*op, op->request.complete(request.params, op->name), device,
                state_->selection_inputs(op->name, forced));
}

BinarySource Engine::warm(const Request& request, const DeviceFacts& device) {
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  const Params complete = op->request.complete(request.params, op->name);
  const Selection selection = explain({op->name, complete}, device);
  if (selection.verdict.kind != Verdict::serve) return BinarySource::none;
  state_->record(*op, selection, complete, device.target);
  return state_->warm(*selection.variant, selection.params, device.target);
}

BinarySource Engine::warm(const Variant& variant, const Params& params, const Target& target) {
  const Params complete = variant.complete(params);
  state_->record(variant, complete, target);
  return state_->warm(variant, complete, target);
}

BinarySource Engine::find(const Variant& variant, const Params& params, const Target& target) {
  return state_->find(state_->binaries.specialize(variant.kernel, variant.complete(params), target));
}

Key Engine::key(const Variant& variant, const Params& params, const Target& target) const {
  return state_->binaries.specialize(variant.kernel, variant.complete(params), target).key;
}

Lookup Engine::look_up(const Variant& variant, const Params& params, const Target& target) {
  return state_->binaries.look_up(variant.kernel, variant.complete(params), target);
}

Binary Engine::compile(const Variant& variant, const Params& params, const Target& target) {
  return state_->binaries.compile_anew(variant.kernel, variant.complete(params), target);
}

const Op& Engine::op(std::string_view name) const {
  return *state_->find_op(name);
}

std::vector<const Op*> Engine::ops() const {
  const std::scoped_lock lock(state_->ops_mutex);
  std::vector<const Op*> all;
  for (const auto& item : state_->ops) all.push_back(item.second.get());
  return all;
}

Device& Engine::current_device() {
  return state_->devices.current();
}
const Options& Engine::options() const {
  return state_->options;
}
Cache& Engine::cache() {
  return state_->binaries.cache();
}
NvrtcCompiler& Engine::nvrtc() {
  return state_->binaries.nvrtc();
}
HostCompiler& Engine::host_compiler() {
  return state_->binaries.host_compiler();
}

EngineStats Engine::stats() const {
  return {state_->plans, state_->binaries.compiled(), state_->binaries.found()};
}

NoCompileScope::NoCompileScope(Engine& engine) : engine_(engine) {
  ++engine_.state_->no_compile_scopes;
}
NoCompileScope::~NoCompileScope() {
  --engine_.state_->no_compile_scopes;
}

}  // namespace jitsmith
