#include <jitsmith/tools/specialisation.hpp>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {

std::string to_string(const Specialisation& s) {
  return fmt::format("{} {} {}:{}", s.target.arch, s.op, s.variant->name, to_string(s.params));
}

KernelRecord record_of(const Specialisation& s) {
  return {.op = s.op,
          .arch = s.target.arch,
          .variant = s.variant->name,
          .params = texts_of(s.params),
          .request = std::nullopt};
}

Specialisation specialisation_of(const Engine& engine, const KernelRecord& record) {
  const Op& op = engine.op(record.op);
  const Variant* const variant = op.variant(record.variant);
  if (variant == nullptr)
    throw InvalidRequest(fmt::format("{} has no variant '{}'; `jitsmith show {}` names them", op.name,
                                     record.variant, op.name));
  const std::string owner = fmt::format("variant {}", variant->name);
  const Params params = typed(record.params, variant->kernel.schema, owner);
  return {op.name, variant, variant->complete(params), device_profile_for_arch(record.arch).target};
}

}  // namespace jitsmith
