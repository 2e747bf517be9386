#include <jitsmith/cache/stats.hpp>

#include <jitsmith/cache/stats_fields.hpp>

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

void add_to(std::uint64_t& sum, std::uint64_t more) {
  sum += more;
}

void add_to(ErrorCounts& sum, const ErrorCounts& more) {
  for (const auto& [error, count] : more) sum[error] += count;
}

void take_from(std::uint64_t& now, std::uint64_t before) {
  now -= before;
}

void take_from(ErrorCounts& now, const ErrorCounts& before) {
  for (const auto& [error, count] : before) now[error] -= count;
  std::erase_if(now, [](const auto& item) { return item.second == 0; });
}

}  // namespace

std::string to_string(const CacheStats& stats) {
  std::string text;
  for_each_counter([&](std::string_view name, auto counter) { append(text, name, stats.*counter); });
  return text;
}

CacheStats& operator+=(CacheStats& sum, const CacheStats& more) {
  for_each_counter([&](std::string_view, auto counter) { add_to(sum.*counter, more.*counter); });
  return sum;
}

CacheStats operator-(CacheStats now, const CacheStats& before) {
  for_each_counter([&](std::string_view, auto counter) { take_from(now.*counter, before.*counter); });
  return now;
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
