// Reading the log of NVRTC or of the host compiler for people: the first error, and the source lines around
// each one. Pure.
#pragma once

#include <string>
#include <string_view>

#include <jitsmith/jit/compiler.hpp>

namespace jitsmith {

// The first line of `log` that reports an error ("simt.cu(5): error: expected an expression"), preferring one
// that names a place in the source; the first line at all when none does.
std::string first_error_line(std::string_view log);

// Whether a line of `log` reports an error.
bool reports_error(std::string_view log);

// What NVRTC holds against a name expression ("cannot determine which instance of ..."), when its first error
// is about the expression and not about the source; else empty. NVRTC reports it as a line of a file of its
// own making.
std::string name_expression_error(std::string_view log);

// The lines around each place in `source` that the log names, numbered, the named one marked; empty when it
// names none.
std::string numbered_source_lines(std::string_view log, const SpecializedSource& source);

}  // namespace jitsmith
