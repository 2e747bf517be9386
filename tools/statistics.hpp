// The statistics of a command's cache, told when the command is done, however it ends.
#pragma once

#include <jitsmith/cache/cache.hpp>

namespace jitsmith {

// Both must outlive it. What the sink does with the event is its matter: main.cpp prints it with --verbose.
class StatisticsAtEnd {
 public:
  StatisticsAtEnd(const Cache& cache, const EventSink& events) : cache_(cache), events_(events) {}
  void add(const CacheStats& of_others) { of_others_ += of_others; }
  ~StatisticsAtEnd() {
    try {
      of_others_ += cache_.stats();
      if (events_) events_({EventLevel::debug, "cache.statistics", to_string(of_others_)});
    } catch (...) {  // the command's own outcome counts
    }
  }
  StatisticsAtEnd(const StatisticsAtEnd&) = delete;
  StatisticsAtEnd& operator=(const StatisticsAtEnd&) = delete;

 private:
  const Cache& cache_;
  const EventSink& events_;
  CacheStats of_others_;  // processes that work for this one
};

}  // namespace jitsmith
