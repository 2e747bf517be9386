// KernelTemplate: a CUDA C++ kernel template and the schema of its parameters. A user's own template and the
// built-in ones are the same thing and go through the same door.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/compiler.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/schema.hpp>

namespace jitsmith {

struct KernelTemplate {
  std::string path;      // virtual file name, "skinny_gemm/simt.cu": part of messages and of the key
  SourceText source;     // its text; may #include "device/..." and the files in `headers`
  std::string function;  // qualified name of the __global__ template, "jitsmith::skinny_gemm_simt"
  Schema schema;         // the template's parameters, in order
  std::vector<SourceFile> headers;  // the user's own headers, beside the built-in device headers
  bool may_spill = false;  // whether registers may spill to local memory; a test holds the others to it
};

}  // namespace jitsmith
