// jitsmith cache: looks at the cache, keeps it in order, ships it. One function each (cache_commands.hpp).
#include <memory>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/statistics.hpp>

namespace jitsmith {
namespace {

struct CacheArgs {
  bool json = false;
  std::string key, import_file;
  TrimArgs trim;
  ExportArgs exported;
  WhyArgs why;
};

// What only concerns the directory (an import: also the remote tier, which it fills) must not read bundles,
// nor talk to a server.
enum class Tiers { directory, directory_and_remote };

CacheOptions cache_of(const Options& options, Tiers tiers) {
  CacheOptions chosen = options.cache_options();
  chosen.bundles.clear();
  if (tiers == Tiers::directory) chosen.remote.url.clear();
  return chosen;
}

// No directory: then these have nothing to do.
template <class Work>
int on_directory(const Options& options, Tiers tiers, const Work& work) {
  Cache cache(cache_of(options, tiers));
  const StatisticsAtEnd statistics(cache, options.events);
  if (const DirectoryState state = cache.state(); state.status == DirectoryStatus::off) {
    complain(state.reason);
    return k_failure;
  }
  return work(cache);
}

// With the bundles; the directory may be off. A lock is only tried, not waited for.
template <class Work>
int on_all_tiers(const Options& options, const Work& work) {
  CacheOptions tiers = options.cache_options();
  tiers.lock_wait = {};
  Cache cache(std::move(tiers));
  const StatisticsAtEnd statistics(cache, options.events);
  return work(cache);
}

}  // namespace

SubCommand cache_command(Arguments& app) {
  Arguments arguments = app.sub_command("cache", "Look at the cache, keep it in order, ship it");
  arguments.at_most_one_sub_command();
  const auto args = std::make_shared<CacheArgs>();
  arguments.flag("--json", args->json, "Print JSON");
  const Arguments stat =
      arguments.sub_command("stat", "Where it is, whether it is used, what it and its tiers hold");
  const Arguments list = arguments.sub_command("list", "The entries of the directory, one a line");
  Arguments show = arguments.sub_command("show", "All that is known of one entry");
  show.required("key", args->key, "KEY", "Its digest, or as much of it as no other one begins with");
  const Arguments verify = arguments.sub_command(
      "verify", "Check every entry of the directory and the bundles; exit status 1 if any is bad");
  Arguments trim = arguments.sub_command("trim", "Bring the directory under its limits");
  trim.text("--max-bytes", args->trim.max_bytes, "BYTES", "Another limit, as 512M; 0 for none");
  trim.text("--max-entries", args->trim.max_entries, "N", "Another limit; 0 for none");
  trim.flag("--dry-run", args->trim.dry_run, "Remove nothing, say what would go");
  arguments.sub_command("clear", "Remove every entry, without asking");
  Arguments exported = arguments.sub_command("export", "Write the entries to one file, a bundle");
  exported.required("file", args->exported.file, "FILE.jsb", "The file; replaced as a whole");
  exported.comma_separated("--arch", args->exported.archs, "ARCH,...", "Only of these architectures");
  exported.text("--op", args->exported.op, "OP", "Only of this op's templates");
  exported.text("--template", args->exported.template_path, "PATH", "Only of this template");
  Arguments imported =
      arguments.sub_command("import", "Store the entries of a bundle in the directory and the remote tier");
  imported.required("file", args->import_file, "FILE.jsb", "The bundle");
  Arguments why = arguments.sub_command(
      "why", "Whether a request's kernel is cached, and how the nearest differs; exit status 1 if it is not");
  add_request_args(why, args->why.request, true);
  why.text("--arch", args->why.arch, "ARCH", "The architecture, as sm_90a");
  why.text("--device", args->why.device, "NAME", "Instead, a named device: h200, b200, a100, ...");

  return {arguments, [=](Options options) {
            if (!arguments.sub_command_given())
              throw InvalidRequest("cache is given no sub-command; see jitsmith cache --help");
            const bool json = args->json;
            if (stat.given()) return on_all_tiers(options, [&](Cache& c) { return cache_stat(c, json); });
            if (show.given())
              return on_all_tiers(options, [&](Cache& c) { return cache_show(c, args->key, json); });
            if (verify.given()) return on_all_tiers(options, [&](Cache& c) { return cache_verify(c, json); });
            if (why.given()) return cache_why(std::move(options), args->why, json);
            if (imported.given())
              return on_directory(options, Tiers::directory_and_remote, [&](Cache& c) {
                return cache_import(c, options, args->import_file, json);
              });
            return on_directory(options, Tiers::directory, [&](Cache& c) {
              if (list.given()) return cache_list(c, json);
              if (trim.given()) return cache_trim(c, args->trim, json);
              if (exported.given()) return cache_export(c, options, args->exported, json);
              return cache_clear(c, json);
            });
          }};
}

}  // namespace jitsmith
