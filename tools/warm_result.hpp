// WarmResult: what became of one specialisation, and its form on the line that a worker answers with.
#pragma once

#include <string>
#include <string_view>

#include <jitsmith/cache/stats.hpp>

namespace jitsmith {

enum class WarmOutcome {
  unfinished,  // not reached
  cached,
  compiled,
  missing,  // and not to be compiled: a dry run
  failed,
};

std::string_view to_string(WarmOutcome outcome);

struct WarmResult {
  WarmOutcome outcome = WarmOutcome::unfinished;
  double milliseconds = 0;  // of compiling, with all around it
  std::string not_stored;   // why it was compiled and is not in the cache; empty when it is
  std::string not_shared;  // why it was compiled and the remote tier lacks it; empty when it need not have it
  std::string error;       // of a failure: a sentence
  std::string log;         // of a failure: what the compiler said, as far as it is known
  CacheStats statistics;   // of the worker's cache since its last result
  std::string complaints;  // standard error of the worker; not part of the line
};

WarmResult failure(std::string error, std::string log = {});

// On one line. What a worker did not write is a failure that says so.
std::string to_line(const WarmResult& result);
WarmResult warm_result_of(std::string_view line);

}  // namespace jitsmith
