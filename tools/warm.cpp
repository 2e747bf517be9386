// jitsmith warm: fills the cache for devices that need not be here. A second run goes on where the first one
// ended.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/request_file.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/request_args.hpp>
#include <jitsmith/tools/warm_set.hpp>

namespace jitsmith {
namespace {

struct WarmArgs {
  RequestArgs request;
  std::vector<std::string> files, archs;
  std::string device;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool all = false, dry_run = false, json = false;
};

std::vector<DeviceFacts> devices_for(const WarmArgs& args) {
  std::vector<DeviceFacts> devices;
  for (const std::string& arch : args.archs) devices.push_back(device_profile_for_arch(arch));
  if (args.device.empty()) {
    if (devices.empty())
      throw InvalidRequest("warm needs an architecture; give --arch sm_90a or --device h200");
    return devices;
  }
  const DeviceFacts& named = device_profile(args.device);
  if (devices.empty()) return {named};
  const auto place = std::ranges::find(devices, named.target, &DeviceFacts::target);
  if (place == devices.end())
    throw InvalidRequest(
        fmt::format("--device {} is of {}, which --arch does not name; add it or leave one out", named.name,
                    named.target.arch));
  *place = named;
  return devices;
}

WarmSet wanted(const Engine& engine, const WarmArgs& args) {
  if (!args.all && args.files.empty() && args.request.op.empty())
    throw InvalidRequest("warm needs to be told what; give OP --set name=value ..., --from FILE or --all");
  if (args.request.op.empty() && !args.request.sets.empty())
    throw InvalidRequest("--set belongs to an op; give OP as well, or leave it out");
  std::vector<Request> from_files;
  for (const std::string& file : args.files)
    for (const RawRequest& raw : RequestFile::read(file).requests)
      from_files.push_back({raw.op, raw.typed(engine.op(raw.op).request, file)});

  WarmSet set(engine);
  for (const DeviceFacts& device : devices_for(args)) {
    if (!args.request.op.empty())
      set.add({args.request.op, args.request.typed(engine.op(args.request.op).request)}, device,
              args.request.forced());
    for (const Request& request : from_files) set.add(request, device);
    if (args.all)
      for (const Op* op : engine.ops()) set.add_all(*op, device);
  }
  return set;
}

enum class Outcome { cached, compiled, missing, failed };
constexpr const char* k_outcomes[] = {"cached", "compiled", "missing", "failed"};

struct Result {
  Outcome outcome = Outcome::failed;
  std::string error;
};

Result warm_one(Engine& engine, const Specialisation& item) {
  try {
    const BinarySource source = engine.warm(*item.variant, item.params, item.target);
    return {source == BinarySource::compiled ? Outcome::compiled : Outcome::cached, {}};
  } catch (const NotCached&) {
    return {Outcome::missing, {}};  // the policy of a dry run
  } catch (const std::exception& error) {
    return {Outcome::failed, error.what()};
  }
}

// Calls `done(index, result)` as results come, one at a time.
template <class Done>
void warm_each(Engine& engine, const std::vector<Specialisation>& items, unsigned jobs, const Done& done) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < items.size(); i = next++) {
      Result result = warm_one(engine, items[i]);
      const std::scoped_lock lock(mutex);
      done(i, std::move(result));
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::min<std::size_t>(jobs, items.size()); ++i) threads.emplace_back(work);
  work();
}

class Progress {
 public:
  Progress(std::size_t total, bool silent)
      : total_(total), silent_(silent), terminal_(stdout_is_terminal()) {}

  void show(const Specialisation& item, Outcome outcome) {
    ++done_;
    if (silent_) return;
    const std::string line = fmt::format("[{}/{}] {:<8} {}", done_, total_,
                                         k_outcomes[static_cast<int>(outcome)], to_string(item));
    if (!terminal_) return print(line + '\n');
    print(fmt::format("\r\x1b[K{}", line.substr(0, 79)));  // one line, written over; a longer one would wrap
    std::fflush(stdout);
  }

  void end() const {
    if (!silent_ && terminal_ && done_ > 0) print("\r\x1b[K");
  }

 private:
  std::size_t total_, done_ = 0;
  bool silent_, terminal_;
};

// What was compiled and could not be kept, in a sentence; empty when all was stored.
std::string not_stored(const Cache& cache, std::size_t compiled) {
  const std::uint64_t written = cache.stats().written;
  if (written >= compiled) return {};
  const DirectoryState state = cache.state();
  return fmt::format("{} kernels were compiled but not stored: {}", compiled - written,
                     state.reason.empty() ? to_string(cache.stats()) : state.reason);
}

int report(const WarmSet& set, const std::vector<Result>& results, const Cache& cache, const WarmArgs& args) {
  std::size_t counts[4] = {};
  Json kernels = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Specialisation& item = set.items()[i];
    ++counts[static_cast<int>(results[i].outcome)];
    kernels.push_back({{"op", item.op},
                       {"arch", item.target.arch},
                       {"variant", item.variant->name},
                       {"params", json_of(item.params)},
                       {"outcome", k_outcomes[static_cast<int>(results[i].outcome)]}});
    if (results[i].outcome != Outcome::failed) continue;
    kernels.back()["error"] = results[i].error;
    complain(fmt::format("{} failed: {}", to_string(item), results[i].error));
  }
  const auto [cached, compiled, missing, failed] = counts;
  if (args.json)
    print_json({{"kernels", std::move(kernels)},
                {"cached", cached},
                {"compiled", compiled},
                {"missing", missing},
                {"failed", failed},
                {"requests_without_kernel", set.without_kernel()}});
  else
    print(fmt::format("{} kernels: {} already cached, {} compiled, {} missing, {} failed{}\n", results.size(),
                      cached, compiled, missing, failed,
                      set.without_kernel() == 0 ? ""
                                                : fmt::format("; {} requests need none (declined or empty)",
                                                              set.without_kernel())));
  const std::string loss = not_stored(cache, compiled);
  if (!loss.empty()) complain(loss);
  // Only a dry run has missing ones; the build of a container asks it whether the cache is complete.
  return missing == 0 && failed == 0 && loss.empty() ? k_success : k_failure;
}

int warm(Options options, const WarmArgs& args) {
  // A production environment says cached_only, and warming is how it comes to have what it needs. A dry run
  // is the same as a real one except that it may not compile.
  options.policy = args.dry_run ? Policy::cached_only : Policy::compile;
  Engine engine(std::move(options));
  if (const DirectoryState state = engine.cache().state();
      state.status != DirectoryStatus::usable && !args.dry_run) {
    complain("there is no cache to fill: " + state.reason);
    return k_failure;
  }
  const WarmSet set = wanted(engine, args);
  std::vector<Result> results(set.items().size());
  Progress progress(results.size(), args.json);
  warm_each(engine, set.items(), args.jobs, [&](std::size_t i, Result result) {
    results[i] = std::move(result);
    progress.show(set.items()[i], results[i].outcome);
  });
  progress.end();
  return report(set, results, engine.cache(), args);
}

}  // namespace

SubCommand warm_command(Arguments& app) {
  Arguments arguments = app.sub_command("warm", "Fill the cache; needs no GPU");
  const auto args = std::make_shared<WarmArgs>();
  add_request_args(arguments, args->request, false);
  arguments.repeated("--from", args->files, "FILE.json", "A file of requests; may be repeated");
  arguments.flag("--all", args->all, "Every candidate of every op");
  arguments.comma_separated("--arch", args->archs, "ARCH,...",
                            "Architectures, as sm_90a,sm_100a; host is one");
  arguments.text("--device", args->device, "NAME",
                 "A named device to choose for, of one of the architectures");
  arguments.count("--jobs", args->jobs, 1024, "N", "Compiles at a time");
  arguments.flag("--dry-run", args->dry_run,
                 "Compile nothing, say what is missing; exit status 1 if anything is");
  arguments.flag("--json", args->json, "Print JSON");
  return {arguments, [args](Options options) { return warm(std::move(options), *args); }};
}

}  // namespace jitsmith
