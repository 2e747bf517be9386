#include <jitsmith/cache/stats.hpp>

#include <cstring>
#include <iterator>

namespace jitsmith {
namespace {

void append(std::string& text, std::string_view name, std::uint64_t value) {
  fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : " ", name, value);
}

void append(std::string& text, std::string_view name, const ErrorCounts& counts) {
  std::uint64_t sum = 0;
  std::string details;
  for (const auto& [error, count] : counts) {
    sum += count;
    const char* const known = ::strerrorname_np(error);
    append(details, known != nullptr ? known : fmt::format("E{}", error), count);
  }
  append(text, name, sum);
  if (!details.empty()) text += fmt::format(" ({})", details);
}

}  // namespace

std::string to_string(const CacheStats& stats) {
  std::string text;
  append(text, "hits", stats.hits);
  append(text, "misses", stats.misses);
  append(text, "corrupt", stats.corrupt);
  append(text, "mismatched", stats.mismatched);
  append(text, "newer", stats.newer);
  append(text, "refused", stats.refused);
  append(text, "known_bad", stats.known_bad);
  append(text, "read_failed", stats.read_failed);
  append(text, "repaired", stats.repaired);
  append(text, "repair_failed", stats.repair_failed);
  append(text, "written", stats.written);
  append(text, "rejected", stats.rejected);
  append(text, "skipped", stats.skipped);
  append(text, "write_failed", stats.write_failed);
  append(text, "out_of_memory", stats.out_of_memory);
  return text;
}

void CacheCounters::add(std::uint64_t CacheStats::*counter) {
  const std::scoped_lock lock(mutex_);
  ++(stats_.*counter);
}

void CacheCounters::add(ErrorCounts CacheStats::*counters, int error) {
  const std::scoped_lock lock(mutex_);
  ++(stats_.*counters)[error];
}

CacheStats CacheCounters::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

}  // namespace jitsmith
