#include <jitsmith/runtime/builtin_ops.hpp>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>

namespace jitsmith {

std::vector<Op> builtin_ops(const TemplateFiles& files) {
  return {skinny_gemm_op(files)};
}

TuningTable builtin_tuning_table(std::vector<std::string>& problems) {
  const std::optional<std::string> text = TemplateFiles().text("tuning_table.jsonl");
  return TuningTable::parse(text.value_or(""), "tuning_table.jsonl", problems);
}

}  // namespace jitsmith
