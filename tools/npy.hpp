// NumPy's .npy files, as far as jitsmith has element types: little-endian, C order in memory.
//
//   uint16 <-> bf16 (its bits)   float32 <-> f32   uint8 <-> u8   int32 <-> i32   int64 <-> i64   bool -> u8,
//   0 or 1
//
// Both throw InvalidRequest, naming the path and the rule.
#pragma once

#include <string>

#include <jitsmith/runtime/arrays.hpp>

namespace jitsmith {

// Reads formats 1.0, 2.0 and 3.0; an array in Fortran order becomes one in C order.
Array read_npy(const std::string& path);

// Writes format 1.0, byte for byte as numpy.save does. The file appears whole or not at all.
void write_npy(const std::string& path, const Array& array);

}  // namespace jitsmith
