// Drives a fuzzer where there is no libFuzzer: the files of the corpus as they are, then random mutations of
// them for -max_total_time=SECONDS. Understands that option of libFuzzer's and -artifact_prefix=PATH, under
// which it keeps the input that failed. The seed is fixed: a failure repeats.
#include <chrono>
#include <csignal>
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

#include <sanitizer/common_interface_defs.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

// What a dying process needs to know to name the input that killed it.
const Bytes* g_input = nullptr;
std::string g_artifact_prefix;

void keep_input() {
  if (g_input == nullptr) return;
  const std::string path = g_artifact_prefix + "failed";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(g_input->data()), static_cast<std::streamsize>(g_input->size()));
  std::fprintf(stderr, "The input that failed: %s\n", path.c_str());
}

// The process dies in any case: there is nothing left that the calls in keep_input could harm.
void on_abort(int) {
  keep_input();
}

void try_input(const Bytes& bytes) {
  g_input = &bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  g_input = nullptr;
}

Bytes mutated(Bytes bytes, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto byte = static_cast<std::uint8_t>(random());
    switch (random() % 8) {
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
  constexpr std::string_view k_time_option = "-max_total_time=", k_prefix_option = "-artifact_prefix=";
  std::chrono::seconds time{0};
  std::vector<Bytes> corpus{{}};
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (argument.starts_with(k_time_option))
      time = std::chrono::seconds(std::stoul(std::string(argument.substr(k_time_option.size()))));
    if (argument.starts_with(k_prefix_option)) g_artifact_prefix = argument.substr(k_prefix_option.size());
    if (argument.starts_with('-')) continue;
    for (const auto& file : std::filesystem::recursive_directory_iterator(argument)) {
      if (!file.is_regular_file()) continue;
      std::ifstream in(file.path(), std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, on_abort);

  for (const Bytes& bytes : corpus) try_input(bytes);
  std::mt19937_64 random(1);
  std::size_t runs = 0;
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;
       ++runs)
    try_input(mutated(corpus[random() % corpus.size()], random));
  std::printf("%zu inputs and %zu mutations\n", corpus.size(), runs);
}
