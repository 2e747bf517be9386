// Compiler: source text to machine code. NVRTC and the system C++ compiler are the two implementations.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/binary.hpp>
#include <jitsmith/jit/source_text.hpp>
#include <jitsmith/jit/target.hpp>

namespace jitsmith {

// A file that exists in memory only. `path` is what an #include "path" names.
struct SourceFile {
  std::string path;
  SourceText text;
};

// A complete translation unit for one instantiation.
struct SpecializedSource {
  SourceFile main;                  // the path is virtual and fixed, so that equal input gives equal bytes
  std::vector<SourceFile> headers;  // every header that `main` can include, and no other, sorted by path
  std::string instantiation;        // "jitsmith::skinny_gemm_simt<128, 4>", the kernel to export
};

class Compiler {
 public:
  virtual ~Compiler() = default;

  // Identifies the compiler exactly, readable, one line: two toolchains that may emit different code differ
  // in it. Does not load or start the compiler. Throws CompileError when none is found, with the places
  // searched.
  virtual std::string identity() = 0;

  // The code-generation options for `arch`, in order: part of the key, and what compile() uses.
  virtual std::vector<std::string> options(const std::string& arch) const = 0;

  // Thread safe. Throws CompileError (instantiation, options, numbered source lines, whole log).
  virtual Binary compile(const SpecializedSource& source, const std::string& arch) = 0;
};

}  // namespace jitsmith
