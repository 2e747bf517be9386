// Drives a fuzzer where there is no libFuzzer: the files of the corpus as they are, then -runs=N random
// mutations of them. The seed is fixed: a failure repeats.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes mutated(Bytes bytes, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto byte = static_cast<std::uint8_t>(random());
    switch (random() % 4) {
      case 0:
        bytes.insert(place, byte);
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        if (!bytes.empty()) bytes.erase(place);
        break;
      default:
        if (!bytes.empty()) *place = byte;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view runs_option = "-runs=";
  std::size_t runs = 0;
  std::vector<Bytes> corpus{{}};
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (argument.starts_with(runs_option)) {
      runs = std::stoul(std::string(argument.substr(runs_option.size())));
      continue;
    }
    for (const auto& file : std::filesystem::recursive_directory_iterator(argument)) {
      if (!file.is_regular_file()) continue;
      std::ifstream in(file.path(), std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }

  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  std::mt19937_64 random(1);
  for (std::size_t run = 0; run < runs; ++run) {
    const Bytes bytes = mutated(corpus[random() % corpus.size()], random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs and %zu mutations\n", corpus.size(), runs);
}
