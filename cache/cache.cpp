#include <jitsmith/cache/cache.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace jitsmith {
namespace {

// A sink must not throw; one that does must not turn a hit into a miss.
EventSink shielded(EventSink sink) {
  if (!sink) return {};
  return [sink = std::move(sink)](const Event& event) {
    try {
      sink(event);
    } catch (...) {
    }
  };
}

}  // namespace

Cache::Cache(CacheOptions options)
    : file_system_(options.file_system != nullptr ? *options.file_system : real_file_system()),
      clock_(options.clock != nullptr ? *options.clock : default_clock_),
      events_(shielded(std::move(options.events))) {
  Directory directory = open_directory(file_system_, options.directory);
  state_ = std::move(directory.state);
  if (directory.entries.is_open()) {
    store_.emplace(Store::Context{file_system_, clock_, counters_, events_}, std::move(directory.entries));
  }
  if (state_.status == DirectoryStatus::read_only) store_->close_writes(EROFS);
  if (state_.status != DirectoryStatus::usable && events_) {
    // Being turned off on purpose is nothing to warn about.
    const EventLevel level = options.directory.enabled ? EventLevel::warning : EventLevel::info;
    events_({level, state_.status == DirectoryStatus::off ? "cache.off" : "cache.read_only", state_.reason});
  }
}

std::optional<Entry> Cache::get(std::string_view key_text, const Digest& digest) noexcept {
  std::optional<Entry> found;
  try {
    if (store_) found = store_->get(key_text, digest);
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
  }
  counters_.add(found ? &CacheStats::hits : &CacheStats::misses);
  return found;
}

PutResult Cache::put(const Entry& entry, const Digest& digest) noexcept {
  try {
    if (store_) return store_->put(entry, digest);
    counters_.add(&CacheStats::skipped);
    return PutResult::off;
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
    return PutResult::failed;
  }
}

bool Cache::remove(const Digest& digest) noexcept {
  try {
    return !store_ || store_->remove(digest);
  } catch (...) {
    return false;
  }
}

DirectoryState Cache::state() const {
  if (state_.status != DirectoryStatus::usable) return state_;
  const auto closed = store_->writes_closed();
  if (!closed) return state_;
  return {DirectoryStatus::read_only, state_.path,
          fmt::format("the cache directory {} could not be written ({}), so {}", state_.path,
                      std::strerror(closed->error),
                      closed->for_good ? "it is only read from now on" : "nothing is stored for a minute")};
}

void Cache::list(const std::function<void(const ListedEntry&)>& visit) const {
  if (store_) store_->list(visit);
}

ClearResult Cache::clear() noexcept {
  try {
    return store_ ? store_->clear() : ClearResult{};
  } catch (...) {
    return {};
  }
}

}  // namespace jitsmith
