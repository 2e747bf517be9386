// What `jitsmith warm` says at its end.
#pragma once

#include <optional>
#include <string>

#include <jitsmith/tools/warm_args.hpp>
#include <jitsmith/tools/warm_bundle.hpp>
#include <jitsmith/tools/warm_run.hpp>
#include <jitsmith/tools/warm_set.hpp>

namespace jitsmith {

struct WarmReport {
  const WarmSet& set;
  const WarmRun& run;
  WarmTrouble trouble;  // with what was asked for
  std::optional<WrittenBundle> bundle;
  std::string why_no_bundle;  // a sentence, when there should be one
  bool interrupted = false;
};

// True when everything that was wanted is there now.
bool complete(const WarmRun& run);

// To standard output as text or JSON; failures to standard error too.
void print_report(const WarmReport& report, bool as_json);

}  // namespace jitsmith
