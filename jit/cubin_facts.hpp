// What a launch needs to know about a kernel, read from its cubin and from ptxas's report, without a driver.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <jitsmith/jit/binary.hpp>

namespace jitsmith {

// The facts of the kernel `lowered_name`. `log` is the log of the compile that made `cubin`, with `ptxas -v`
// output. Throws CompileError, which says what is missing, when a fact cannot be read: a wrong 0 would be
// worse.
KernelFacts facts_of_cubin(std::span<const std::byte> cubin, std::string_view log,
                           const std::string& lowered_name);

}  // namespace jitsmith
