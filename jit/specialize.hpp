// specialize: template + parameters -> one complete translation unit.
#pragma once

#include <jitsmith/jit/compiler.hpp>
#include <jitsmith/jit/kernel_template.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/template_files.hpp>

namespace jitsmith {

// The template's text, every header that it can include, and the instantiation that `params` (complete, as
// Schema::complete returns them) spell. Headers come from the template itself, else from `files`.
// Throws CompileError for an #include "x" that neither answers, for any other way to read a file
// (include_scan.hpp), and for a template whose own path is not plain and relative. Pure but for the override
// folder of `files`.
SpecializedSource specialize(const KernelTemplate& kernel, const Params& params, const TemplateFiles& files);

}  // namespace jitsmith
