#include <jitsmith/runtime/binaries.hpp>

#include <chrono>

#include <fmt/format.h>

#include <jitsmith/jit/specialize.hpp>

namespace jitsmith {
namespace {

EntryKind kind_of(const Target& target) {
  return target.executor == Executor::host ? EntryKind::host_object : EntryKind::cubin;
}

}  // namespace

std::string KernelSource::describe() const {
  return fmt::format("{} {} for {}", source.main.path, source.instantiation, target.arch);
}

Binaries::Binaries(const Options& options)
    : events_(options.events),
      cache_({.directory = options.cache, .events = options.events}),
      files_(options.template_folder),
      nvrtc_(options.nvrtc, options.nvrtc_options),
      host_compiler_(options.host_compiler) {}

Compiler& Binaries::compiler_for(const Target& target) {
  return target.executor == Executor::host ? static_cast<Compiler&>(host_compiler_) : nvrtc_;
}

std::vector<SourceFile> Binaries::headers_of(const KernelTemplate& kernel) {
  if (!kernel.headers.empty() || files_.overridden()) return include_closure(kernel, files_);
  const std::scoped_lock lock(closures_mutex_);
  const auto place = closures_.find(kernel.source);
  if (place != closures_.end()) return place->second;
  return closures_.emplace(kernel.source, include_closure(kernel, files_)).first->second;
}

KernelSource Binaries::specialize(const KernelTemplate& kernel, const Params& params, const Target& target) {
  Compiler& compiler = compiler_for(target);
  SpecializedSource source = jitsmith::specialize(kernel, params, headers_of(kernel));
  Key key = make_key(kernel, params, source, target, compiler.identity(), compiler.options(target.arch));
  return {std::move(source), target, std::move(key)};
}

std::optional<Binary> Binaries::find(const KernelSource& kernel) {
  std::optional<Entry> entry = cache_.get(kernel.key.text, kernel.key.digest);
  if (!entry || entry->kind != kind_of(kernel.target)) return std::nullopt;
  std::optional<KernelFacts> facts = facts_from_text(entry->facts);
  if (!facts) return std::nullopt;
  ++found_;
  return Binary{.code = std::move(entry->payload), .facts = *std::move(facts), .log = {}};
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
