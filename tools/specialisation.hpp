// Specialisation: one binary to be had, and its form on a line between processes and in recordings.
#pragma once

#include <string>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/recording.hpp>

namespace jitsmith {

// `variant` points into an op of the engine.
struct Specialisation {
  std::string op;
  const Variant* variant;
  Params params;
  Target target;
};

std::string to_string(const Specialisation& specialisation);  // "sm_90a skinny_gemm simt:threads=128,..."

// Inverses of each other, but for the request of a record. The second throws InvalidRequest for a record that
// the engine's ops do not admit.
KernelRecord record_of(const Specialisation& specialisation);
Specialisation specialisation_of(const Engine& engine, const KernelRecord& record);

}  // namespace jitsmith
