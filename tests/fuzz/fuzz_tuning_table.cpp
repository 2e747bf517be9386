// TuningTable::parse: whatever it takes prints, and that parses to the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <jitsmith/runtime/tuning_table.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jitsmith::TuningTable;
  std::vector<std::string> problems;
  const TuningTable first = TuningTable::parse({reinterpret_cast<const char*>(data), size}, "fuzz", problems);
  problems.clear();
  const std::string text = first.text();
  const TuningTable second = TuningTable::parse(text, "fuzz", problems);
  if (!problems.empty() || second.rows().size() != first.rows().size() || second.text() != text) std::abort();
  return 0;
}
