// Arrays: host-side tensors by name, and how an op runs on them. NumPy files, the demo and tuning go through
// here; applications launch plans on their own pointers instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <jitsmith/jit/element_type.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/runtime/stream.hpp>

namespace jitsmith {

class Plan;

// A dense array in row-major order.
struct Array {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  static Array zeros(ElementType type, std::vector<std::int64_t> shape);

  std::int64_t count() const;
  std::string describe() const;  // "bf16 [4, 7168]"

  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

using Arrays = std::map<std::string, Array, std::less<>>;
using Pointers = std::map<std::string, void*, std::less<>>;  // the same names, in the memory of the target

struct ArraySpec {
  std::string name;
  std::string meaning;  // "bf16 [M, K], activations"
  bool required = true;
};

struct CheckResult {
  bool passed = false;
  std::string summary;  // "worst error 0.31 of the tolerance", or what is wrong and where
};

struct ArrayInterface {
  std::vector<ArraySpec> inputs, outputs;

  // The request that these inputs and settings mean. Throws InvalidRequest naming the array, its type or
  // shape, the rule.
  std::function<Params(const Arrays& inputs, const Params& settings)> make_request;

  // The outputs before the launch: shapes, types and initial contents.
  std::function<Arrays(const Params& request, const Arrays& inputs)> make_outputs;

  // Launches on `pointers`, which has every input and output. `arrays` gives shapes and types of the same
  // names.
  std::function<void(const Plan& plan, Stream stream, const Arrays& arrays, const Pointers& pointers)> launch;

  // Random inputs for a request: the same for the same seed.
  std::function<Arrays(const Params& request, std::uint64_t seed)> make_inputs;

  // Compares outputs with the reference, by the rule that the family documents.
  std::function<CheckResult(const Params& request, const Arrays& inputs, const Arrays& outputs)> check;

  // The request that `jitsmith demo` runs.
  Params demo;
};

}  // namespace jitsmith
