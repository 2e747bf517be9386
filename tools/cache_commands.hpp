// The sub-commands of `jitsmith cache`, one function each; cache.cpp parses and chooses. Each returns the
// exit status and throws InvalidRequest for what has no meaning.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/runtime/options.hpp>
#include <jitsmith/tools/request_args.hpp>

namespace jitsmith {

// cache_stat.cpp
int cache_stat(Cache& cache, bool as_json);

// cache_show.cpp
int cache_list(const Cache& cache, bool as_json);
int cache_show(const Cache& cache, const std::string& key, bool as_json);  // a digest, or how one begins
int cache_verify(const Cache& cache, bool as_json);

// cache_trim.cpp
struct TrimArgs {
  std::string max_bytes, max_entries;  // empty: as the environment says
  bool dry_run = false;
};
int cache_trim(Cache& cache, const TrimArgs& args, bool as_json);
int cache_clear(Cache& cache, bool as_json);

// cache_transfer.cpp
struct ExportArgs {
  std::string file;
  std::vector<std::string> archs;  // empty: all
  std::string op, template_path;   // likewise
};
int cache_export(Cache& cache, const Options& options, const ExportArgs& args, bool as_json);
int cache_import(Cache& cache, const Options& options, const std::string& file, bool as_json);

// cache_why.cpp
struct WhyArgs {
  RequestArgs request;
  std::string arch, device;
};
int cache_why(Options options, const WhyArgs& args, bool as_json);

}  // namespace jitsmith
