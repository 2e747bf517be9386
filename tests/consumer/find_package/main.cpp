// Uses the installed library as a program does: the engine, an op, a decision.
#include <cstdio>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

int main() {
  jitsmith::Options options;
  options.executor = jitsmith::Executor::host;
  options.cache.enabled = false;
  const jitsmith::Engine engine(options);
  const jitsmith::SkinnyGemm request{.m = 1, .n = 64, .k = 64};
  const jitsmith::Selection selection = engine.explain(
      {std::string(jitsmith::SkinnyGemm::k_op), params_of(request)}, jitsmith::device_profile("h200"));
  if (selection.variant == nullptr) return 1;
  std::printf("found the installed library: %s\n", selection.variant->name.c_str());
  return 0;
}
