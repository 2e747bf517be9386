// specialize: template + parameters -> one complete translation unit.
#pragma once

#include <vector>

#include <jitsmith/jit/compiler.hpp>
#include <jitsmith/jit/kernel_template.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/template_files.hpp>

namespace jitsmith {

// Every header that the template can include, sorted by path: from the template itself, else from `files`.
// Throws CompileError for an #include "x" that neither answers and for any other way to read a file
// (include_scan.hpp). Pure but for the override folder of `files`.
std::vector<SourceFile> include_closure(const KernelTemplate& kernel, const TemplateFiles& files);

// The template's text, its include closure, and the instantiation that `params` (complete, as
// Schema::complete returns them) spell. Throws CompileError for a template whose own path is not plain and
// relative. Pure.
SpecializedSource specialize(const KernelTemplate& kernel, const Params& params,
                             std::vector<SourceFile> headers);

}  // namespace jitsmith
