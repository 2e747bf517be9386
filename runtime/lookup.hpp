// Lookup: what the cache has for one kernel, and what is nearest to it when that is not there.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/key.hpp>
#include <jitsmith/runtime/binary_source.hpp>

namespace jitsmith {

struct Lookup {
  // One field of the key that the nearest entry has otherwise; an absent one is empty.
  struct Difference {
    std::string field, wanted, had;
    std::string text;  // "parameter.threads (128, not 64)"
  };

  std::string kernel;            // "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<...> for sm_90a"
  Key key;                       // as wanted; its toolchain is empty when there is no compiler
  std::string why_no_toolchain;  // one sentence, when there is no compiler
  BinarySource source = BinarySource::none;  // where the very key is found: disk, bundle or remote
  // Where nothing is: the same kernel, compiled by another toolchain than the one that is here. It serves
  // under the policy cached_only, and no other.
  BinarySource other_toolchain = BinarySource::none;
  BinarySource nearest = BinarySource::none;  // where the entry is whose key differs least
  std::vector<Difference> differences;        // of that entry
  std::string holdings;  // "the cache holds 14 kernels of this template for sm_90a and ..."
};

}  // namespace jitsmith
