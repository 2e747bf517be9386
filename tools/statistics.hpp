// The statistics of a command's cache, told when the command is done, however it ends.
#pragma once

#include <jitsmith/cache/cache.hpp>

namespace jitsmith {

// Both must outlive it. What the sink does with the event is its matter: main.cpp prints it with --verbose.
class StatisticsAtEnd {
 public:
  StatisticsAtEnd(const Cache& cache, const EventSink& events) : cache_(cache), events_(events) {}
  ~StatisticsAtEnd() {
    try {
      if (events_) events_({EventLevel::debug, "cache.statistics", to_string(cache_.stats())});
    } catch (...) {  // the command's own outcome counts
    }
  }
  StatisticsAtEnd(const StatisticsAtEnd&) = delete;
  StatisticsAtEnd& operator=(const StatisticsAtEnd&) = delete;

 private:
  const Cache& cache_;
  const EventSink& events_;
};

}  // namespace jitsmith
