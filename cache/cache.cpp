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

std::string_view to_string(Tier tier) {
  switch (tier) {
    case Tier::directory:
      return "directory";
    case Tier::bundle:
      return "bundle";
    case Tier::remote:
      return "remote";
  }
  return "unknown";
}

Cache::Cache(CacheOptions options)
    : file_system_(options.file_system != nullptr ? *options.file_system : real_file_system()),
      clock_(options.clock != nullptr ? *options.clock : default_clock_),
      events_(shielded(std::move(options.events))),
      limits_(options.limits),
      lock_wait_(options.lock_wait),
      look_only_(options.look_only) {
  Directory directory =
      open_directory(file_system_, options.directory, look_only_ ? IfMissing::fail : IfMissing::create);
  state_ = std::move(directory.state);
  if (directory.entries.is_open())
    store_.emplace(context(), std::move(directory.entries),
                   look_only_ ? StoreAccess::look_only : StoreAccess::own, limits_);
  if (state_.status == DirectoryStatus::read_only) store_->close_writes(EROFS);
  if (state_.status != DirectoryStatus::usable) {
    // Being turned off on purpose is nothing to warn about, nor is it that nothing was stored yet.
    const EventLevel level =
        options.directory.enabled && !directory.is_missing ? EventLevel::warning : EventLevel::info;
    context().tell(level, state_.status == DirectoryStatus::off ? "cache.off" : "cache.read_only",
                   state_.reason);
  }
  for (const std::string& path : options.bundles) {
    const BundleState& bundle = bundles_.emplace_back(std::make_unique<Bundle>(context(), path))->state();
    if (!bundle.usable) context().tell(EventLevel::warning, "bundle.refused", bundle.reason);
  }
  if (look_only_) options.remote.mode = RemoteMode::read_only;
  remote_ = make_remote(context(), options.remote);
  if (remote_ && !remote_->state().usable)
    context().tell(EventLevel::warning, "remote.off", remote_->state().reason);
}

std::optional<Found> Cache::find(std::string_view key_text, const Digest& digest) {
  if (store_)
    if (auto entry = store_->get(key_text, digest)) return Found{*std::move(entry), Tier::directory};
  for (const auto& bundle : bundles_)
    if (auto entry = bundle->get(key_text, digest)) return Found{*std::move(entry), Tier::bundle};
  if (remote_)
    if (auto entry = remote_->get(key_text, digest)) return Found{*std::move(entry), Tier::remote};
  return std::nullopt;
}

std::optional<Found> Cache::get(std::string_view key_text, const Digest& digest) noexcept {
  try {
    std::optional<Found> found = find(key_text, digest);
    if (events_) tell_outcome(digest, found);  // the text costs more than a hit is worth when nobody listens
    if (!found) {
      counters_.add(&CacheStats::misses);
      return std::nullopt;
    }
    counters_.add(found->tier == Tier::directory ? &CacheStats::hits
                  : found->tier == Tier::bundle  ? &CacheStats::bundle_hits
                                                 : &CacheStats::remote_hits);
    if (!look_only_ && found->tier != Tier::directory) copy_up(found->entry, digest);
    return found;
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
    counters_.add(&CacheStats::misses);
    return std::nullopt;
  }
}

void Cache::copy_up(const Entry& entry, const Digest& digest) noexcept {
  try {
    if (store_ && store_->put(entry, digest) == PutResult::stored) counters_.add(&CacheStats::copied_up);
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);  // the hit is a hit all the same
  }
}

std::optional<Found> Cache::get_again(std::string_view key_text, const Digest& digest) noexcept {
  try {
    if (!store_) return std::nullopt;
    auto entry = store_->get(key_text, digest);
    if (!entry) return std::nullopt;
    counters_.add(&CacheStats::hits);
    std::optional<Found> found = Found{*std::move(entry), Tier::directory};
    if (events_) tell_outcome(digest, found);
    return found;
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
    return std::nullopt;
  }
}

void Cache::tell_outcome(const Digest& digest, const std::optional<Found>& found) {
  if (found)
    context().tell(EventLevel::debug, "cache.hit",
                   fmt::format("entry {} is in the {}", digest.hex(), to_string(found->tier)));
  else
    context().tell(EventLevel::debug, "cache.miss", fmt::format("entry {} is in no tier", digest.hex()));
}

PutResult Cache::put(const Entry& entry, const Digest& digest) noexcept {
  try {
    PutResult result = PutResult::off;
    if (store_)
      result = store_->put(entry, digest);
    else
      counters_.add(&CacheStats::skipped);
    if (remote_) remote_->put(entry, digest);
    return result;
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
    return PutResult::failed;
  }
}

BuildLock Cache::lock_build(const Digest& digest, std::string_view what) noexcept {
  try {
    if (store_) return store_->lock_build(digest, what, lock_wait_);
  } catch (...) {
    counters_.add(&CacheStats::out_of_memory);
  }
  return {};
}

bool Cache::remove(const Digest& digest) noexcept {
  try {
    return !store_ || store_->remove(digest);
  } catch (...) {
    return false;
  }
}

DirectoryState Cache::state() const {
  if (state_.status != DirectoryStatus::usable || look_only_) return state_;
  const auto closed = store_->writes_closed();
  if (!closed) return state_;
  return {DirectoryStatus::read_only, state_.path,
          fmt::format("the cache directory {} could not be written ({}), so {} or set JITSMITH_CACHE_DIR to "
                      "another one",
                      state_.path, std::strerror(closed->error),
                      closed->for_good ? "it is only read from now on; make it writable"
                                       : "nothing is stored for a minute; make room on its disk")};
}

std::vector<BundleState> Cache::bundle_states() const {
  std::vector<BundleState> states;
  for (const auto& bundle : bundles_) states.push_back(bundle->state());
  return states;
}

RemoteState Cache::remote_state() const {
  return remote_ ? remote_->state() : RemoteState{};
}

bool Cache::ping_remote() noexcept {
  try {
    return remote_ && remote_->ping();
  } catch (...) {
    return false;
  }
}

void Cache::list(const EntryVisitor& visit) const {
  if (store_) store_->list(visit);
}

void Cache::list_bundles(const EntryVisitor& visit) const {
  for (const auto& bundle : bundles_) bundle->list(visit);
}

void Cache::list_bundle(std::size_t index, const EntryVisitor& visit) const {
  if (index < bundles_.size()) bundles_[index]->list(visit);
}

ClearResult Cache::clear() noexcept {
  try {
    return store_ ? store_->clear() : ClearResult{};
  } catch (...) {
    return {};
  }
}

TrimResult Cache::trim(const CacheLimits& limits, TrimMode mode) noexcept {
  try {
    return store_ ? store_->trim(limits, mode) : TrimResult{};
  } catch (...) {
    return {};
  }
}

}  // namespace jitsmith
