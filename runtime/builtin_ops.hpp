// The kernel families that ship with jitsmith, and their measured choices. To add a family, add it to this
// list.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/template_files.hpp>
#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/tuning_table.hpp>

namespace jitsmith {

std::vector<Op> builtin_ops(const TemplateFiles& files);

// The embedded table; lines that can't be used are reported in `problems`.
TuningTable builtin_tuning_table(std::vector<std::string>& problems);

}  // namespace jitsmith
