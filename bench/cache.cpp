// What the cache costs: a verified hit from disk, a key, a publish, a trim, and whether look-ups slow down as
// the cache grows. Beside each figure stands what the same bytes cost bare: reading the file, or hashing it.
//
//   bench_cache [DIRECTORY]        (default: a new one below TMPDIR, removed afterwards)
//
// Medians; the page cache is warm.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/key.hpp>
#include <jitsmith/jit/nvrtc_compiler.hpp>
#include <jitsmith/jit/specialize.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

namespace jitsmith::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t k_entry_bytes = std::size_t{64} << 10;

template <class F>
double microseconds(F&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The median of `rounds` calls of work(round).
template <class F>
double median(int rounds, F&& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) times.push_back(microseconds([&] { work(round); }));
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<std::size_t>(rounds) / 2];
}

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "bench_cache: {}\n", what);
  std::exit(1);
}

// An entry whose file has `bytes` bytes, as large as the key text of a real kernel allows.
Entry entry_of(int number, std::size_t bytes) {
  Entry entry;
  entry.key_text = fmt::format("number[8]={:08}\nfiller[2000]={}\n", number, std::string(2000, 'k'));
  entry.facts = "lowered_name=kernel\n";
  entry.payload.resize(bytes - k_entry_header_bytes - 8 - entry.key_text.size() - entry.facts.size());
  std::mt19937_64 random(static_cast<std::uint64_t>(number));
  for (std::size_t i = 0; i + 8 <= entry.payload.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(&entry.payload[i], &word, sizeof word);
  }
  std::memcpy(entry.payload.data(), "\177ELF", 4);
  return entry;
}

Cache open_cache(const fs::path& directory, CacheLimits limits = {.max_bytes = 0, .max_entries = 0}) {
  DirectoryRequest request;
  request.explicit_dir = directory.string();
  return Cache({.directory = request, .limits = limits});
}

void fill(Cache& cache, int begin, int end, std::size_t bytes) {
  for (int number = begin; number < end; ++number)
    if (cache.put(entry_of(number, bytes)) != PutResult::stored) fail(to_string(cache.stats()));
}

void measure_hits(const fs::path& directory) {
  Cache cache = open_cache(directory / "hits");
  constexpr int k_entries = 16, k_rounds = 2001;
  fill(cache, 0, k_entries, k_entry_bytes);
  std::vector<Entry> entries;
  std::vector<Digest> digests;
  std::vector<fs::path> files;
  for (int number = 0; number < k_entries; ++number) {
    entries.push_back(entry_of(number, k_entry_bytes));
    digests.push_back(digest_of(entries.back().key_text));
  }
  for (const auto& file : fs::recursive_directory_iterator(directory / "hits"))
    if (file.path().extension() == ".jse") files.push_back(file.path());

  const double hit = median(k_rounds, [&](int round) {
    const auto at = static_cast<std::size_t>(round % k_entries);
    const auto found = cache.get(entries[at].key_text, digests[at]);
    if (!found || found->entry.payload.size() != entries[at].payload.size()) fail("a hit that missed");
  });
  std::vector<char> buffer(k_entry_bytes);
  const double bare = median(k_rounds, [&](int round) {
    const int file = ::open(files[static_cast<std::size_t>(round % k_entries)].c_str(), O_RDONLY | O_CLOEXEC);
    if (::read(file, buffer.data(), buffer.size()) != static_cast<ssize_t>(buffer.size()))
      fail("a short read");
    ::close(file);
  });
  const double hash = median(k_rounds, [&](int) { (void)digest_of({buffer.data(), buffer.size()}); });
  const double miss =
      median(k_rounds, [&](int) { (void)cache.get("no such key", digest_of("no such key")); });
  fmt::print(
      "verified hit, 64 KiB entry      {:8.1f} us   (open + read + close {:.1f}, XXH3-128 of it {:.1f}; a "
      "miss {:.1f})\n",
      hit, bare, hash, miss);
}

void measure_publish(const fs::path& directory) {
  Cache cache = open_cache(directory / "publish");
  std::vector<Entry> entries;
  for (int number = 0; number < 301; ++number) entries.push_back(entry_of(number, k_entry_bytes));
  const double publish = median(300, [&](int round) { cache.put(entries[static_cast<std::size_t>(round)]); });
  const std::string file = (directory / "bare").string();
  const double bare = median(300, [&](int) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (::write(descriptor, entries[0].payload.data(), entries[0].payload.size()) < 0) fail("a failed write");
    ::fsync(descriptor);
    ::close(descriptor);
    ::rename(file.c_str(), (file + "2").c_str());
  });
  fmt::print("publish, 64 KiB entry           {:8.1f} us   (write + fsync + rename {:.1f})\n", publish, bare);
}

void measure_key() {
  Engine engine;
  const Op& op = engine.op(SkinnyGemm::k_op);
  const DeviceFacts& h200 = device_profile("h200");
  const Params request = op.request.complete(params_of(SkinnyGemm{.m = 4, .n = 2112, .k = 7168}), op.name);
  const Selection selection = engine.explain({op.name, request}, h200);
  const KernelTemplate& kernel = selection.variant->kernel;
  const TemplateFiles files("");
  const auto headers = include_closure(kernel, files);
  const std::vector<std::string> options = engine.nvrtc().options(h200.target.arch);
  const std::string toolchain = engine.nvrtc().identity();
  const double time = median(2001, [&](int) {
    const SpecializedSource source = specialize(kernel, selection.params, headers);
    (void)make_key(kernel, selection.params, source, h200.target, toolchain, options);
  });
  const double select_time = median(2001, [&](int) { (void)engine.explain({op.name, request}, h200); });
  fmt::print(
      "key of skinny_gemm, M=4         {:8.1f} us   (specialise and key; selection before it {:.1f})\n", time,
      select_time);
}

void measure_growth(const fs::path& directory) {
  constexpr std::size_t k_small = 8 << 10;
  const fs::path folder = directory / "growth";
  double first = 0;
  int filled = 0;
  for (const int size : {10, 100, 1000, 10'000}) {
    {
      Cache cache = open_cache(folder);
      fill(cache, filled, size, k_small);
      filled = size;
    }
    Cache cache = open_cache(folder);  // as a new process finds it
    std::vector<Entry> wanted;
    for (int i = 0; i < 10; ++i) wanted.push_back(entry_of(size / 10 * i, k_small));
    for (const Entry& entry : wanted) (void)cache.get(entry.key_text);  // into the page cache
    const double hit = median(2001, [&](int round) {
      if (!cache.get(wanted[static_cast<std::size_t>(round % 10)].key_text)) fail("a hit that missed");
    });
    if (first == 0) first = hit;
    fmt::print("hit, 8 KiB, {:>6} entries       {:8.1f} us   ({:.2f} of that with 10)\n", size, hit,
               hit / first);
  }
  // Every entry is older than the grace for this clock.
  class LaterClock final : public jitsmith::Clock {
   public:
    std::chrono::system_clock::time_point wall() const override {
      return std::chrono::system_clock::now() + std::chrono::hours(3);
    }
  } later;
  DirectoryRequest request;
  request.explicit_dir = folder.string();
  Cache cache({.directory = request, .clock = &later});
  TrimResult result;
  const double dry =
      microseconds([&] { cache.trim({.max_bytes = 0, .max_entries = 5000}, TrimMode::dry_run); });
  const double trim =
      microseconds([&] { result = cache.trim({.max_bytes = 0, .max_entries = 5000}, TrimMode::remove); });
  fmt::print("trim of {} entries to {}     {:8.1f} ms   (looking alone {:.1f})\n", result.entries,
             result.entries - result.removed_entries, trim / 1e3, dry / 1e3);
}

int run(int argc, char** argv) {
  std::string directory = argc > 1 ? argv[1] : (fs::temp_directory_path() / "bench_cache-XXXXXX").string();
  if (argc <= 1 && ::mkdtemp(directory.data()) == nullptr) fail("no temporary directory");
  measure_hits(directory);
  measure_key();
  measure_publish(directory);
  measure_growth(directory);
  if (argc <= 1) fs::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace jitsmith::bench

int main(int argc, char** argv) {
  return jitsmith::bench::run(argc, argv);
}
