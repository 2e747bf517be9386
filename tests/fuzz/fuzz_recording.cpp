// Recording::parse: whatever it takes prints, and that parses to the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <jitsmith/runtime/recording.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jitsmith::Recording;
  std::vector<std::string> problems;
  const Recording first = Recording::parse({reinterpret_cast<const char*>(data), size}, "fuzz", problems);
  problems.clear();
  const Recording second = Recording::parse(first.text(), "fuzz", problems);
  if (!problems.empty() || second.lines.size() != first.lines.size()) std::abort();
  for (std::size_t i = 0; i < first.lines.size(); ++i)
    if (second.lines[i].record != first.lines[i].record) std::abort();
  return 0;
}
