#include <jitsmith/tools/array_run.hpp>

#include <deque>

namespace jitsmith {

ArrayRun run_on_arrays(const Op& op, const Plan& plan, Device& device, const Arrays& inputs) {
  ArrayRun run{.outputs = op.arrays->make_outputs(plan.state().request, inputs)};
  Arrays arrays = inputs;
  arrays.insert(run.outputs.begin(), run.outputs.end());

  std::deque<Buffer> buffers;  // neither moves nor copies
  Pointers pointers;
  for (const auto& [name, array] : arrays) {
    Buffer& buffer = buffers.emplace_back(device, array.bytes.size());
    device.copy_in(buffer.data(), array.bytes.data(), array.bytes.size());
    pointers.emplace(name, buffer.data());
  }

  const auto start = std::chrono::steady_clock::now();
  op.arrays->launch(plan, nullptr, arrays, pointers);
  device.synchronize();
  run.launch = std::chrono::steady_clock::now() - start;

  for (auto& [name, array] : run.outputs)
    device.copy_out(array.bytes.data(), pointers.find(name)->second, array.bytes.size());
  return run;
}

std::string_view describe(BinarySource source) {
  switch (source) {
    case BinarySource::none:
      return "not needed";
    case BinarySource::memory:
      return "in memory";
    case BinarySource::disk:
      return "from the cache";
    case BinarySource::bundle:
      return "from a bundle";
    case BinarySource::remote:
      return "from the remote tier";
    case BinarySource::compiled:
      return "compiled";
  }
  return {};
}

}  // namespace jitsmith
