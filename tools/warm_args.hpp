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

// What is wrong with parts of what was asked for, a sentence each: no reason to warm nothing.
struct WarmTrouble {
  std::vector<std::string> problems;  // records that can't be had, or nothing is wanted: the run has failed
  std::vector<std::string> torn;      // recordings with lines that a crash tore: it has not
};

// Throws InvalidRequest for all that is wrong elsewhere.
WarmSet wanted(const Engine& engine, const WarmArgs& args, WarmTrouble& trouble);

}  // namespace jitsmith
