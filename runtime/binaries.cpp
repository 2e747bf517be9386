#include <jitsmith/runtime/binaries.hpp>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/specialize.hpp>

namespace jitsmith {
namespace {

constexpr std::chrono::seconds k_census_age{1};
constexpr int k_census_rest = 100;  // times what it took: for large caches, which take seconds

EntryKind kind_of(const Target& target) {
  return target.executor == Executor::host ? EntryKind::host_object : EntryKind::cubin;
}

}  // namespace

BinarySource source_of(Tier tier) {
  switch (tier) {
    case Tier::directory:
      return BinarySource::disk;
    case Tier::bundle:
      return BinarySource::bundle;
    case Tier::remote:
      return BinarySource::remote;
  }
  return BinarySource::none;
}

std::string_view to_string(BinarySource source) {
  constexpr std::string_view k_names[] = {"none", "memory", "disk", "bundle", "remote", "compiled"};
  return k_names[static_cast<int>(source)];
}

std::string KernelSource::describe() const {
  return fmt::format("{} {} for {}", source.main.path, source.instantiation, target.arch);
}

Binaries::Binaries(const Options& options)
    : events_(options.events),
      cache_(options.cache_options()),
      files_(options.template_folder),
      nvrtc_(options.nvrtc, options.nvrtc_options),
      host_compiler_(options.host_compiler),
      any_toolchain_(options.policy == Policy::cached_only && options.any_toolchain) {}

Compiler& Binaries::compiler_for(const Target& target) {
  return target.executor == Executor::host ? static_cast<Compiler&>(host_compiler_) : nvrtc_;
}

std::vector<SourceFile> Binaries::headers_of(const KernelTemplate& kernel) {
  if (!kernel.headers.empty() || files_.overridden()) return include_closure(kernel, files_);
  return closures_.with([&](auto& closures) {
    const auto place = closures.find(kernel.source);
    if (place != closures.end()) return place->second;
    return closures.emplace(kernel.source, include_closure(kernel, files_)).first->second;
  });
}

KernelSource Binaries::specialize(const KernelTemplate& kernel, const Params& params, const Target& target) {
  return specialize(kernel, params, target,
                    any_toolchain_ ? NoCompiler::is_allowed : NoCompiler::is_an_error);
}

KernelSource Binaries::specialize(const KernelTemplate& kernel, const Params& params, const Target& target,
                                  NoCompiler no_compiler) {
  Compiler& compiler = compiler_for(target);
  std::string toolchain, why_none;
  try {
    toolchain = compiler.identity();
  } catch (const CompileError& error) {
    if (no_compiler == NoCompiler::is_an_error) throw;
    why_none = error.what();
  }
  SpecializedSource source = jitsmith::specialize(kernel, params, headers_of(kernel));
  Key key = make_key(kernel, params, source, target, toolchain, compiler.options(target.arch));
  return {std::move(source), params, target, std::move(key), std::move(why_none)};
}

std::optional<SourcedBinary> Binaries::find(const KernelSource& kernel) {
  if (kernel.why_no_toolchain.empty())
    if (auto found = find(kernel.key, kernel.target)) return found;
  return any_toolchain_ ? find_of_another_toolchain(kernel) : std::nullopt;
}

std::optional<SourcedBinary> Binaries::find(const Key& key, const Target& target) {
  return binary_of(cache_.get(key.text, key.digest), key, target);
}

std::optional<SourcedBinary> Binaries::binary_of(std::optional<Found> found, const Key& key,
                                                 const Target& target) {
  if (!found || found->entry.kind != kind_of(target)) return std::nullopt;
  std::optional<KernelFacts> facts = facts_from_text(found->entry.facts);
  if (!facts) return std::nullopt;
  ++found_;
  return SourcedBinary{{.code = std::move(found->entry.payload), .facts = *std::move(facts), .log = {}},
                       source_of(found->tier),
                       key.digest};
}

std::optional<SourcedBinary> Binaries::find_of_another_toolchain(const KernelSource& kernel) {
  for (const std::string& toolchain : census()->toolchains(kernel.target.executor)) {
    const Key key = with_toolchain(kernel.key, toolchain);
    if (key.text == kernel.key.text) continue;  // that of the compiler that is here
    if (auto found = find(key, kernel.target)) {
      if (events_)
        events_({EventLevel::info, "cache.other_toolchain",
                 fmt::format("{} is served as {} compiled it", kernel.describe(), toolchain)});
      return found;
    }
  }
  return std::nullopt;
}

std::shared_ptr<const Census> Binaries::census() {
  const std::scoped_lock lock(census_mutex_);
  const auto start = std::chrono::steady_clock::now();
  if (!census_ || start >= census_stale_at_) {
    census_ = std::make_shared<const Census>(Census::take(cache_));
    const auto end = std::chrono::steady_clock::now();
    census_stale_at_ = end + std::max<std::chrono::nanoseconds>(k_census_age, k_census_rest * (end - start));
  }
  return census_;
}

SourcedBinary Binaries::find_or_compile(const KernelSource& kernel) {
  if (auto found = find(kernel)) return *std::move(found);
  return building_.get(kernel.key.text, [&] { return build(kernel); });
}

SourcedBinary Binaries::build(const KernelSource& kernel) {
  const BuildLock lock = cache_.lock_build(kernel.key.digest, kernel.describe());
  // Whoever had the lock before has most likely stored what it compiled, also when there was no wait for it.
  if (auto found = binary_of(cache_.get_again(kernel.key.text, kernel.key.digest), kernel.key, kernel.target))
    return *std::move(found);
  if (lock.outcome != LockOutcome::held) cache_.note_unlocked_compile();
  return {compile(kernel), BinarySource::compiled, kernel.key.digest};
}

Binary Binaries::compile(const KernelSource& kernel) {
  const auto start = std::chrono::steady_clock::now();
  Binary binary = compiler_for(kernel.target).compile(kernel.source, kernel.target.arch);
  ++compiled_;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (events_)
    events_({EventLevel::info, "compile",
             fmt::format("compiled {} in {:.0f} ms", kernel.describe(), took.count())});
  cache_.put({.kind = kind_of(kernel.target),
              .key_text = kernel.key.text,
              .facts = to_text(binary.facts),
              .payload = binary.code},
             kernel.key.digest);
  return binary;
}

Binary Binaries::compile_anew(const KernelTemplate& kernel, const Params& params, const Target& target) {
  return compiler_for(target).compile(jitsmith::specialize(kernel, params, headers_of(kernel)), target.arch);
}

}  // namespace jitsmith
