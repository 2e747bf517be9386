#include <jitsmith/runtime/engine.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/key.hpp>
#include <jitsmith/jit/specialize.hpp>
#include <jitsmith/runtime/builtin_ops.hpp>
#include <jitsmith/runtime/devices.hpp>
#include <jitsmith/runtime/single_flight.hpp>

namespace jitsmith {
namespace {

// A binary that is ready to launch, and where it came from when it was loaded.
struct Loaded {
  std::shared_ptr<const LoadedKernel> kernel;
  KernelFacts facts;
  BinarySource source;
};

// What a refusal names: "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<...> for sm_90a".
std::string describe(const SpecializedSource& source, const Target& target) {
  return fmt::format("{} {} for {}", source.main.path, source.instantiation, target.arch);
}

std::string warm_command(const Request& request, const Target& target) {
  std::string sets;
  for (const auto& [name, value] : request.params.items()) sets += fmt::format(" --set {}={}", name, to_string(value));
  return fmt::format("`jitsmith warm {}{} --arch {}`", request.op, sets, target.arch);
}

}  // namespace

struct Engine::State {
  explicit State(Options engine_options)
      : options(std::move(engine_options)),
        cache({.directory = options.cache, .events = options.events}),
        files(options.template_folder),
        nvrtc(options.nvrtc, options.nvrtc_options),
        host_compiler(options.host_compiler),
        devices(options) {
    std::vector<std::string> problems;
    if (!options.tuning_table.empty()) user_table = TuningTable::read(options.tuning_table, problems);
    shipped_table = builtin_tuning_table(problems);
    for (const std::string& problem : problems) tell(EventLevel::warning, "table.bad_line", problem);
    for (const auto& [op, text] : options.forced) forced.emplace(op, ForcedChoice::parse(text));
  }

  void tell(EventLevel level, std::string_view what, std::string text) const {
    if (options.events) options.events({level, what, std::move(text)});
  }

  Compiler& compiler_for(const Target& target) {
    return target.executor == Executor::host ? static_cast<Compiler&>(host_compiler) : nvrtc;
  }

  std::shared_ptr<const Op> find_op(std::string_view name) const {
    const std::shared_lock lock(ops_mutex);
    if (const auto place = ops.find(name); place != ops.end()) return place->second;
    std::string names;
    for (const auto& item : ops) names += (names.empty() ? "" : ", ") + item.first;
    throw InvalidRequest(fmt::format("there is no op '{}'; give one of {}", name, names));
  }

  std::shared_ptr<const OriginalKernel> find_original(std::string_view op) const {
    const std::shared_lock lock(ops_mutex);
    const auto place = originals.find(op);
    return place == originals.end() ? nullptr : place->second;
  }

  SelectionInputs selection_inputs(std::string_view op, const std::optional<ForcedChoice>& forced_now) const {
    SelectionInputs inputs{.user_table = &user_table, .shipped_table = &shipped_table, .forced = forced_now};
    if (const auto place = forced.find(op); !inputs.forced && place != forced.end()) inputs.forced = place->second;
    return inputs;
  }

  // The binary from the cache, or compiled and then published.
  std::pair<Binary, BinarySource> obtain(const SpecializedSource& source, const Key& key, const Target& target,
                                         const Request& request) {
    const EntryKind kind = target.executor == Executor::host ? EntryKind::host_object : EntryKind::cubin;
    if (auto entry = cache.get(key.text, key.digest); entry && entry->kind == kind)
      if (auto facts = facts_from_text(entry->facts)) {
        ++loaded_from_disk;
        return {Binary{std::move(entry->payload), *std::move(facts), {}}, BinarySource::disk};
      }
    if (options.policy == Policy::cached_only)
      throw NotCached(fmt::format("{} is not cached and the policy is cached_only; warm the cache with {}",
                                  describe(source, target), warm_command(request, target)));
    return {compile(source, key, target), BinarySource::compiled};
  }

  Binary compile(const SpecializedSource& source, const Key& key, const Target& target) {
    const auto start = std::chrono::steady_clock::now();
    Binary binary = compiler_for(target).compile(source, target.arch);
    ++compiled;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    tell(EventLevel::info, "compile", fmt::format("compiled {} in {:.0f} ms", describe(source, target), took.count()));
    cache.put({.kind = target.executor == Executor::host ? EntryKind::host_object : EntryKind::cubin,
               .key_text = key.text,
               .facts = to_text(binary.facts),
               .payload = binary.code},
              key.digest);
    return binary;
  }

  // Obtains and loads. A verified entry that the driver refuses is dropped and compiled once afresh.
  Loaded build(Device& device, const SpecializedSource& source, const Key& key, const Request& request) {
    auto [binary, from] = obtain(source, key, device.facts().target, request);
    try {
      return {device.load(binary), binary.facts, from};
    } catch (const std::runtime_error& refusal) {
      if (from != BinarySource::disk || options.policy == Policy::cached_only) throw;
      tell(EventLevel::warning, "cache.refused_by_driver",
           fmt::format("the cached code of {} was refused and is compiled again: {}", source.instantiation, refusal.what()));
      cache.remove(key.digest);
    }
    const Binary fresh = compile(source, key, device.facts().target);
    return {device.load(fresh), fresh.facts, BinarySource::compiled};
  }

  bool is_prepared(const Device& device, const LoadedKernel* kernel) {
    const std::scoped_lock lock(prepared_mutex);
    return prepared.contains({&device, kernel});
  }
  void note_prepared(const Device& device, const LoadedKernel* kernel) {
    const std::scoped_lock lock(prepared_mutex);
    prepared.emplace(&device, kernel);
  }

  void refuse_while_forbidden(Device& device, Stream stream, const SpecializedSource& source, const Request& request) {
    const char* why = no_compile_scopes.load(std::memory_order_relaxed) > 0 ? "a NoCompileScope forbids compiling and loading"
                      : device.capturing(stream)                             ? "the stream is being captured"
                                                                             : nullptr;
    if (why != nullptr)
      throw NotCached(fmt::format("{} is not loaded and {}; plan it before, or warm the cache with {}",
                                  describe(source, device.facts().target), why, warm_command(request, device.facts().target)));
  }

  const Options options;
  Cache cache;
  TemplateFiles files;
  NvrtcCompiler nvrtc;
  HostCompiler host_compiler;
  Devices devices;
  TuningTable user_table, shipped_table;
  std::map<std::string, ForcedChoice, std::less<>> forced;

  mutable std::shared_mutex ops_mutex;
  std::map<std::string, std::shared_ptr<const Op>, std::less<>> ops;
  std::map<std::string, std::shared_ptr<const OriginalKernel>, std::less<>> originals;

  // By key text and not by digest, which is only an address.
  SingleFlight<std::string, Loaded> loaded;
  SingleFlight<std::string, BinarySource> warmed;

  std::mutex prepared_mutex;
  std::set<std::pair<const Device*, const LoadedKernel*>> prepared;  // `loaded` keeps the kernels alive

  std::atomic<int> no_compile_scopes{0};
  std::atomic<std::uint64_t> plans{0}, compiled{0}, loaded_from_disk{0};
};

Engine::Engine(Options options) : state_(std::make_unique<State>(std::move(options))) {
  for (Op& op : builtin_ops(state_->files)) add(std::move(op));
}

Engine::~Engine() = default;

// THE MAIN PATH: request -> select -> specialize -> key -> cache -> compile -> load -> (the plan's) launch.
Plan Engine::plan_on(Device& device, const Request& request, Stream stream, const std::optional<ForcedChoice>& forced) {
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  const Target& target = device.facts().target;
  Compiler& compiler = state_->compiler_for(target);

  auto plan = std::make_shared<PlanState>();
  plan->op = op->name;
  plan->owner = op;
  plan->original = state_->find_original(op->name);
  plan->request = op->request.complete(request.params, op->name);
  plan->selection = select(*op, plan->request, device.facts(), state_->selection_inputs(op->name, forced));
  if (plan->selection.verdict.kind != Verdict::serve) return Plan(std::move(plan));

  const KernelTemplate& kernel = plan->selection.variant->kernel;
  const SpecializedSource source = specialize(kernel, plan->selection.params, state_->files);
  const Key key = make_key(kernel, plan->selection.params, source, target, compiler.identity(), compiler.options(target.arch));
  plan->key = key.digest;

  std::optional<Loaded> loaded = state_->loaded.find(key.text);
  plan->source = BinarySource::memory;
  // Another device of this architecture may have loaded it: here it still has to be prepared.
  if (!loaded || !state_->is_prepared(device, loaded->kernel.get()))
    state_->refuse_while_forbidden(device, stream, source, request);
  if (!loaded) {
    loaded = state_->loaded.get(key.text, [&] { return state_->build(device, source, key, request); });
    plan->source = loaded->source;
  }
  device.prepare(*loaded->kernel, plan->selection.shape.dynamic_shared_bytes);
  state_->note_prepared(device, loaded->kernel.get());
  plan->kernel = loaded->kernel;
  plan->facts = loaded->facts;
  ++state_->plans;
  return Plan(std::move(plan));
}

Plan Engine::plan(const Request& request, Stream stream, const std::optional<ForcedChoice>& forced) {
  return plan_on(current_device(), request, stream, forced);
}

Plan Engine::remember(const PlanKey& key, Plan plan) {
  // An original kernel may still be registered for it.
  if (!plan && plan.state().original == nullptr) return plan;
  return Plan(plans_.insert(key, plan.share()));
}

void Engine::add(Op op) {
  if (op.name.empty() || op.variants.empty() || op.variant(op.generic_variant) == nullptr || !op.generic_params)
    throw InvalidRequest(fmt::format("op '{}' is incomplete; give it a name, a variant and a generic variant with parameters", op.name));
  for (const Variant& variant : op.variants)
    if (!variant.shape)
      throw InvalidRequest(fmt::format("variant '{}' of op '{}' has no launch shape; give it one", variant.name, op.name));
  const std::unique_lock lock(state_->ops_mutex);
  if (state_->ops.contains(op.name))
    throw InvalidRequest(fmt::format("there is already an op '{}'; choose another name", op.name));
  std::string name = op.name;
  state_->ops.emplace(std::move(name), std::make_shared<const Op>(std::move(op)));
}

void Engine::set_original_kernel(std::string_view op, OriginalKernel kernel) {
  state_->find_op(op);
  const std::unique_lock lock(state_->ops_mutex);
  state_->originals.insert_or_assign(std::string(op), std::make_shared<const OriginalKernel>(std::move(kernel)));
}

Selection Engine::explain(const Request& request, const DeviceFacts& device, const std::optional<ForcedChoice>& forced) const {
  const std::shared_ptr<const Op> op = state_->find_op(request.op);
  return select(*op, op->request.complete(request.params, op->name), device, state_->selection_inputs(op->name, forced));
}

BinarySource Engine::warm(const Request& request, const DeviceFacts& device) {
  const Selection selection = explain(request, device);
  if (selection.verdict.kind != Verdict::serve) return BinarySource::none;
  return warm(*selection.variant, selection.params, device.target);
}

BinarySource Engine::warm(const Variant& variant, const Params& params, const Target& target) {
  Compiler& compiler = state_->compiler_for(target);
  const SpecializedSource source = specialize(variant.kernel, params, state_->files);
  const Key key = make_key(variant.kernel, params, source, target, compiler.identity(), compiler.options(target.arch));
  return state_->warmed.get(key.text, [&] { return state_->obtain(source, key, target, {}).second; });
}

Binary Engine::compile(const Variant& variant, const Params& params, const Target& target) {
  return state_->compiler_for(target).compile(specialize(variant.kernel, params, state_->files), target.arch);
}

const Op& Engine::op(std::string_view name) const { return *state_->find_op(name); }

std::vector<const Op*> Engine::ops() const {
  const std::shared_lock lock(state_->ops_mutex);
  std::vector<const Op*> all;
  for (const auto& item : state_->ops) all.push_back(item.second.get());
  return all;
}

Device& Engine::current_device() { return state_->devices.current(); }
const Options& Engine::options() const { return state_->options; }
Cache& Engine::cache() { return state_->cache; }
NvrtcCompiler& Engine::nvrtc() { return state_->nvrtc; }
HostCompiler& Engine::host_compiler() { return state_->host_compiler; }

EngineStats Engine::stats() const { return {state_->plans, state_->compiled, state_->loaded_from_disk}; }

NoCompileScope::NoCompileScope(Engine& engine) : engine_(engine) { ++engine_.state_->no_compile_scopes; }
NoCompileScope::~NoCompileScope() { --engine_.state_->no_compile_scopes; }

}  // namespace jitsmith
