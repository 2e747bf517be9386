// Key: everything that decides the bytes of a compiled kernel, as readable `name=value` lines, and nothing
// else.
//
// The text itself is the identity: a cache compares it byte for byte, its digest is only an address. Each
// value carries its length, so that no two sets of fields spell the same text:
//
//   key      = { name "[" length "]=" value "\n" }
//   fields   = format, template, function, parameter.<name> (type and value, in schema order), source and
//   header.<path>
//              (digest and size of each text), instantiation, target, option.<i>, toolchain
//
// Not in it: paths on this machine, times, device numbers, thread counts, the compiler's output.
#pragma once

#include <string>
#include <string_view>

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/jit/compiler.hpp>
#include <jitsmith/jit/kernel_template.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/target.hpp>

namespace jitsmith {

inline constexpr int k_key_format = 1;  // raise when the meaning of a field changes

struct Key {
  std::string text;
  Digest digest;
};

// `params` complete; `toolchain` is Compiler::identity(), `options` Compiler::options(target.arch). Pure.
Key make_key(const KernelTemplate& kernel, const Params& params, const SpecializedSource& source,
             const Target& target, const std::string& toolchain, const std::vector<std::string>& options);

// The key of the same kernel compiled by another toolchain. An empty one stands for a compiler that is not
// known. Pure.
Key with_toolchain(const Key& key, std::string_view toolchain);

}  // namespace jitsmith
