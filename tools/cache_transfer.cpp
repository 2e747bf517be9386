// jitsmith cache export | import: entries as one file that ships with a program or an image, and back.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <jitsmith/cache/bundle.hpp>
#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/key_fields.hpp>
#include <jitsmith/runtime/census.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/tools/cache_commands.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
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

}  // namespace

int cache_export(Cache& cache, const Options& options, const ExportArgs& args, bool as_json) {
  const std::vector<std::string> templates = templates_of(args, options);
  std::size_t bad = 0;
  std::vector<std::string> keys;
  cache.list([&](const ListedEntry& entry) {
    if (!entry.problem.empty()) {
      ++bad;
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
    complain(fmt::format("no sound entry of {} is as wanted, so {} is not written; warm the cache first",
                         cache.state().path, args.file));
    return k_failure;
  }
  if (const int error = writer.write(real_file_system(), args.file); error != 0) {
    complain(fmt::format("{} could not be written: {}; choose another place, or make room", args.file,
                         message_of_errno(error)));
    return k_failure;
  }
  if (as_json)
    print_json(
        {{"file", args.file}, {"entries", writer.size()}, {"bytes", writer.bytes()}, {"damaged", bad}});
  else
    print(fmt::format("wrote {} entries, {}, to {}{}\n", writer.size(), size_text(writer.bytes()), args.file,
                      bad == 0 ? "" : fmt::format("; {} damaged ones are left out", bad)));
  return k_success;
}

int cache_import(Cache& cache, const Options& options, const std::string& file, bool as_json) {
  const Clock clock;
  CacheCounters counters;
  Bundle bundle({real_file_system(), clock, counters, options.events},
                std::filesystem::absolute(file).string());
  if (!bundle.state().usable) {
    complain(bundle.state().reason);
    return k_failure;
  }
  std::size_t bad = 0, stored = 0, failed = 0;
  std::vector<std::string> keys;
  bundle.list([&](const ListedEntry& entry) {
    if (!entry.problem.empty())
      ++bad;
    else
      keys.push_back(entry.key_text);
  });
  for (const std::string& key : keys) {
    const Digest digest = digest_of(key);
    const auto entry = bundle.get(key, digest);
    // Looking first leaves alone what a later version has put there.
    const bool is_there = entry && cache.get_again(key, digest).has_value();
    if (entry && (cache.put(*entry, digest) == PutResult::stored || is_there))
      ++stored;
    else
      ++failed;
  }
  if (as_json)
    print_json({{"file", file}, {"stored", stored}, {"failed", failed}, {"damaged", bad}});
  else
    print(fmt::format("stored {} entries of {} in {}\n", stored, file, cache.state().path));
  if (bad > 0)
    complain(fmt::format("{} entries of {} are damaged and were left out; export it anew", bad, file));
  if (failed > 0)
    complain(fmt::format("{} entries could not be stored: {}", failed,
                         cache.state().reason.empty() ? to_string(cache.stats()) : cache.state().reason));
  return bad == 0 && failed == 0 ? k_success : k_failure;
}

}  // namespace jitsmith
