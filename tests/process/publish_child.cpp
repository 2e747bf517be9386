// publish_child DIRECTORY FILL: puts one entry into a cache, its payload filled with the byte FILL. A program
// of its own, so that strace can fail or kill each of its system calls. It prints the statistics. Exit status
// 0 when the cache has the entry in the end, or did not keep it and counted why; anything else is a fault.
#include <cstdio>
#include <cstdlib>

#include <jitsmith/cache/cache.hpp>

#include "cache/samples.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  jitsmith::Cache cache({.directory = jitsmith::test::at(argv[1])});
  jitsmith::Entry entry = jitsmith::test::sample_entry();
  entry.payload = jitsmith::test::elf_payload(20'000, static_cast<unsigned char>(std::atoi(argv[2])));
  const bool stored = cache.put(entry) == jitsmith::PutResult::stored;
  const jitsmith::CacheStats stats = cache.stats();
  std::puts(to_string(stats).c_str());
  const bool explained = !stats.write_failed.empty() || stats.skipped + stats.refused > 0;
  return stored || explained ? 0 : 1;
}
