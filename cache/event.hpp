// Events: how the library says what happened. It never prints; a caller that wants to know sets a sink.
//
// A sink may be called from any thread, also from several at once, and must not throw.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace jitsmith {

enum class EventLevel { debug, info, warning };

struct Event {
  EventLevel level = EventLevel::info;
  std::string_view what;  // a stable name: "cache.hit", "cache.corrupt", "compile", "load", ...
  std::string text;       // one sentence for people
};

using EventSink = std::function<void(const Event&)>;

}  // namespace jitsmith
