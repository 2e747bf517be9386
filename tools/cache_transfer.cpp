// jitsmith cache export | import: entries as one file that ships with a program or an image, and back.
#include <algorithm>

#include <fmt/format.h>

#include <jitsmith/cache/bundle.hpp>
#include <jitsmith/cache/plural.hpp>
#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/key_fields.hpp>
#include <jitsmith/runtime/census.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/file_argument.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/losses.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

// The templates that --op and --template name; none for all.
std::vector<std::string> templates_of(const ExportArgs& args, Options options) {
  std::vector<std::string> paths;
  if (!args.template_path.empty()) paths.push_back(args.template_path);
  if (args.op.empty()) return paths;
  options.cold = true;  // only asked for its ops
  const Engine engine(std::move(options));
  for (const Variant& variant : engine.op(args.op).variants) paths.push_back(variant.kernel.path);
  return paths;
}

bool is_among(std::string_view value, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

// "; left out 2 entries as damaged; left out 1 entry of a newer jitsmith", or "".
std::string left_out_text(std::size_t damaged, std::size_t newer) {
  std::string text;
  if (damaged > 0) text += fmt::format("; left out {} as damaged", plural(damaged, "entry"));
  if (newer > 0) text += fmt::format("; left out {} of a newer jitsmith", plural(newer, "entry"));
  return text;
}

// What one tier took of the entries that it was given.
struct Transfer {
  std::size_t taken = 0;
  std::string why;  // it did not take the first that it did not

  void count(std::string why_not) {
    if (why_not.empty())
      ++taken;
    else if (why.empty())
      why = std::move(why_not);
  }
};

}  // namespace

int cache_export(Cache& cache, const Options& options, const ExportArgs& args, bool as_json) {
  check_replaceable("FILE", args.file);
  const std::vector<std::string> templates = templates_of(args, options);
  std::size_t damaged = 0, newer = 0;
  std::vector<std::string> keys;
  cache.list([&](const ListedEntry& entry) {
    if (!entry.problem.empty()) {
      ++(entry.is_newer ? newer : damaged);
      return;
    }
    const KeyFields fields = key_fields(entry.key_text);
    if (is_among(arch_of(fields), args.archs) &&
        is_among(find_field(fields, "template").value_or(""), templates))
      keys.push_back(entry.key_text);
  });
  BundleWriter writer;
  // Read again, by key, and so verified: it may have been replaced or removed since.
  for (const std::string& key : keys)
    if (const auto found = cache.get(key)) writer.add(found->entry);
  if (writer.size() == 0) {
    complain(fmt::format("no sound entry of {} is as wanted, so {} is not written{}; warm the cache first",
                         cache.state().path, args.file, left_out_text(damaged, newer)));
    return k_failure;
  }
  if (const int error = writer.write(real_file_system(), args.file); error != 0) {
    complain(fmt::format("{} could not be written: {}; choose another place, or make room", args.file,
                         message_of_errno(error)));
    return k_failure;
  }
  if (as_json)
    print_json({{"file", args.file},
                {"entries", writer.size()},
                {"bytes", writer.bytes()},
                {"damaged", damaged},
                {"newer", newer}});
  else
    print(fmt::format("wrote {}, {}, to {}{}\n", plural(writer.size(), "entry"), size_text(writer.bytes()),
                      args.file, left_out_text(damaged, newer)));
  return k_success;
}

int cache_import(Cache& cache, const Options& options, const std::string& file, bool as_json) {
  const Clock clock;
  CacheCounters counters;
  Bundle bundle({real_file_system(), clock, counters, options.events}, absolute_path("FILE", file));
  if (!bundle.state().usable) {
    complain(bundle.state().reason);
    return k_failure;
  }
  std::size_t damaged = 0, newer = 0;
  std::vector<std::string> keys;
  bundle.list([&](const ListedEntry& entry) {
    if (entry.problem.empty())
      keys.push_back(entry.key_text);
    else
      ++(entry.is_newer ? newer : damaged);
  });
  Transfer into_directory, into_remote;
  for (const std::string& key : keys) {
    const CacheStats before = cache.stats();
    const Digest digest = digest_of(key);
    const auto entry = bundle.get(key, digest);
    // Looking first leaves alone what a later version has put there.
    const bool is_there = entry && cache.get_again(key, digest).has_value();
    const bool is_stored = entry && (cache.put(*entry, digest) == PutResult::stored || is_there);
    into_directory.count(is_stored ? ""
                         : entry   ? why_not_stored(cache, before)
                                   : "the bundle has changed meanwhile; import it again");
    if (entry) into_remote.count(why_not_shared(cache, options.remote.mode, before));
  }
  const std::size_t failed = keys.size() - into_directory.taken;
  if (as_json)
    print_json({{"file", file},
                {"stored", into_directory.taken},
                {"failed", failed},
                {"damaged", damaged},
                {"newer", newer}});
  else
    print(fmt::format("stored {} of {} in {}\n", plural(into_directory.taken, "entry"), file,
                      cache.state().path));
  if (damaged > 0)
    complain(fmt::format("left out {} of {} as damaged; export it anew", plural(damaged, "entry"), file));
  if (newer > 0)
    complain(fmt::format("left out {} of {} that a newer jitsmith wrote; import with that one",
                         plural(newer, "entry"), file));
  if (failed > 0)
    complain(fmt::format("{} could not be stored: {}", plural(failed, "entry"), into_directory.why));
  if (!into_remote.why.empty())
    complain(unshared_text(into_remote.taken, keys.size(), "entry", into_remote.why));
  return damaged + newer + failed == 0 ? k_success : k_failure;
}

}  // namespace jitsmith
