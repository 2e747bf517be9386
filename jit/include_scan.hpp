// Which files a source text can include. The cache key covers what is found here, so nothing may be missed:
// what can't be told from the text alone is refused.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/compiler.hpp>

namespace jitsmith {

// The paths of all #include "path" directives, in order. Preprocessor conditions are not evaluated: a header
// behind an #if is named even when no compiler would read it. Comments and string literals are passed over.
//
// Throws CompileError for every other way to reach a file: #include <x> or of a macro, a path that is not
// plain and relative, #include_next (it goes on to the system's folders), #import, #embed, __has_include,
// __has_embed; and for text that compilers are known to split into lines or comments differently.
//
// Two ways stay open to whoever wants to fool the key: __has_include pasted together by ##, and .incbin in an
// asm statement of the host target.
std::vector<std::string> included_paths(const SourceFile& file);

}  // namespace jitsmith
