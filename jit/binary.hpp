// What a compile yields: machine code and the facts that a launch needs. Equal inputs give equal facts (no
// times).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitsmith {

struct KernelFacts {
  std::string lowered_name;                // the symbol to look up in the code
  std::uint32_t registers = 0;             // per thread; 0 on the host target
  std::uint32_t static_shared_bytes = 0;   // per block; 0 on the host target
  std::uint32_t local_bytes = 0;           // stack frame per thread
  std::uint32_t spill_store_bytes = 0;     // per thread
  std::uint32_t spill_load_bytes = 0;      // per thread
  std::vector<std::uint32_t> param_bytes;  // size of each kernel parameter, in order

  friend bool operator==(const KernelFacts&, const KernelFacts&) = default;
};

// One `name=value` line each, the form in which a cache entry stores them; nullopt for a text of another
// shape.
std::string to_text(const KernelFacts& facts);
std::optional<KernelFacts> facts_from_text(std::string_view text);

struct Binary {
  std::vector<std::byte> code;  // a cubin, or a shared object for the host target
  KernelFacts facts;
  std::string log;  // the compiler's output, warnings included; not cached
};

}  // namespace jitsmith
