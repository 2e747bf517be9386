// What every part of the cache works with. All of it must outlive the part.
#pragma once

#include <jitsmith/cache/clock.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/cache/stats.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace jitsmith {

struct CacheContext {
  FileSystem& file_system;
  const Clock& clock;
  CacheCounters& counters;
  const EventSink& events;  // shielded: it does not throw

  void tell(EventLevel level, std::string_view what, std::string text) const {
    if (events) events(Event{level, what, std::move(text)});
  }
};

}  // namespace jitsmith
