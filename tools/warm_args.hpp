// What `jitsmith warm` was told, and the set of kernels that this means.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/arguments.hpp>
#include <jitsmith/tools/request_args.hpp>
#include <jitsmith/tools/warm_set.hpp>

namespace jitsmith {

struct WarmArgs {
  WarmArgs();  // as many jobs as processors

  RequestArgs request;
  std::vector<std::string> files, recordings, archs;
  std::string device, bundle;
  unsigned jobs;
  bool all = false, dry_run = false, json = false;
};

void add_warm_args(Arguments& arguments, WarmArgs& args);

// Throws InvalidRequest. What is wrong with single records of a recording is no reason to warm nothing: it is
// added to `problems`, a sentence each; so is that nothing is wanted after all.
WarmSet wanted(const Engine& engine, const WarmArgs& args, std::vector<std::string>& problems);

}  // namespace jitsmith
