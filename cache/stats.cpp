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
  append(text, "bundle_hits", stats.bundle_hits);
  append(text, "remote_hits", stats.remote_hits);
  append(text, "misses", stats.misses);
  append(text, "copied_up", stats.copied_up);
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
  append(text, "bundle_corrupt", stats.bundle_corrupt);
  append(text, "bundle_mismatched", stats.bundle_mismatched);
  append(text, "remote_corrupt", stats.remote_corrupt);
  append(text, "remote_failed", stats.remote_failed);
  append(text, "remote_written", stats.remote_written);
  append(text, "remote_skipped", stats.remote_skipped);
  append(text, "lock_waits", stats.lock_waits);
  append(text, "lock_timeouts", stats.lock_timeouts);
  append(text, "lock_failed", stats.lock_failed);
  append(text, "compiled_unlocked", stats.compiled_unlocked);
  append(text, "trims", stats.trims);
  append(text, "trimmed", stats.trimmed);
  append(text, "trimmed_bytes", stats.trimmed_bytes);
  append(text, "swept", stats.swept);
  append(text, "trim_failed", stats.trim_failed);
  append(text, "out_of_memory", stats.out_of_memory);
  return text;
}

void CacheCounters::add(std::uint64_t CacheStats::*counter, std::uint64_t amount) {
  stats_.with([&](CacheStats& stats) { stats.*counter += amount; });
}

void CacheCounters::add(ErrorCounts CacheStats::*counters, int error) {
  stats_.with([&](CacheStats& stats) { ++(stats.*counters)[error]; });
}

CacheStats CacheCounters::snapshot() const {
  return stats_.with([](const CacheStats& stats) { return stats; });
}

}  // namespace jitsmith
