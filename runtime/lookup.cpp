#include <jitsmith/runtime/lookup.hpp>

#include <jitsmith/runtime/binaries.hpp>

namespace jitsmith {

Lookup Binaries::look_up(const KernelTemplate& kernel, const Params& params, const Target& target) {
  const KernelSource source = specialize(kernel, params, target, NoCompiler::is_allowed);
  const bool is_key_known = source.why_no_toolchain.empty();
  const std::shared_ptr<const Census> census = this->census();
  const KeyFields wanted = key_fields(source.key.text);
  Lookup lookup{.kernel = source.describe(),
                .key = source.key,
                .why_no_toolchain = source.why_no_toolchain,
                .holdings = describe_holdings(*census, cache_, wanted)};
  if (const auto nearest = census->nearest(wanted)) {
    lookup.nearest = source_of(nearest->tier);
    for (const FieldDifference& difference : nearest->differences)
      lookup.differences.push_back({std::string(difference.name), std::string(difference.wanted.value_or("")),
                                    std::string(difference.had.value_or("")), to_string(difference)});
  }

  if (const auto tier = census->find(source.key.digest); tier && is_key_known) {
    lookup.source = source_of(*tier);
    return lookup;
  }
  for (const std::string& toolchain : census->toolchains(target.executor)) {
    const auto tier = census->find(with_toolchain(source.key, toolchain).digest);
    if (!tier) continue;
    lookup.other_toolchain = source_of(*tier);
    break;
  }
  if (is_key_known && cache_.remote_state().usable)
    if (const auto found = cache_.get(source.key.text, source.key.digest))
      lookup.source = source_of(found->tier);
  return lookup;
}

}  // namespace jitsmith
