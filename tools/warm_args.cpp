#include <jitsmith/tools/warm_args.hpp>

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/recording.hpp>
#include <jitsmith/runtime/request_file.hpp>

namespace jitsmith {
namespace {

// None when neither --arch nor --device is given: recordings know their own.
std::vector<DeviceFacts> devices_for(const WarmArgs& args) {
  std::vector<DeviceFacts> devices;
  for (const std::string& arch : args.archs) devices.push_back(device_profile_for_arch(arch));
  if (args.device.empty()) return devices;
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

void check(const WarmArgs& args) {
  const bool by_request = args.all || !args.files.empty() || !args.request.op.empty();
  if (!by_request && args.recordings.empty())
    throw InvalidRequest(
        "warm needs to be told what; give OP --set name=value ..., --from FILE, --recording FILE or --all");
  if (args.request.op.empty() && !args.request.sets.empty())
    throw InvalidRequest("--set belongs to an op; give OP as well, or leave it out");
  if (by_request && args.archs.empty() && args.device.empty())
    throw InvalidRequest("warm needs an architecture; give --arch sm_90a or --device h200");
  if (!args.bundle.empty() && args.dry_run)
    throw InvalidRequest("--dry-run makes nothing, so there is nothing for --into; leave one out");
}

// Does `work`, and puts the place in front of what is wrong with it.
template <class Work>
auto at(const std::string& place, const Work& work) try {
  return work();
} catch (const InvalidRequest& problem) {
  throw InvalidRequest(fmt::format("{}: {}", place, problem.what()));
}

struct FileRequest {
  Request request;
  std::string place;  // "set.json: requests[3]"
};

std::vector<FileRequest> read_requests(const Engine& engine, const std::vector<std::string>& files) {
  std::vector<FileRequest> requests;
  for (const std::string& file : files)
    for (const RawRequest& raw : RequestFile::read(file).requests) {
      std::string place = fmt::format("{}: requests[{}]", file, raw.index);
      const Op& op = *at(place, [&] { return &engine.op(raw.op); });
      requests.push_back({{raw.op, raw.typed(op.request, file)}, std::move(place)});
    }
  return requests;
}

void add_record(WarmSet& set, const Engine& engine, const KernelRecord& record,
                const std::vector<DeviceFacts>& devices) {
  if (std::ranges::none_of(engine.ops(), [&](const Op* op) { return op->name == record.op; }))
    throw InvalidRequest(
        fmt::format("op '{}' is none of this command's; the program that adds it has to warm it", record.op));
  if (devices.empty()) return set.add(record);
  std::vector<std::string> problems;  // what one device can't have the others still get
  for (const DeviceFacts& device : devices) try {
      set.add(record, device);
    } catch (const InvalidRequest& problem) {
      problems.emplace_back(problem.what());
    }
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  if (!problems.empty()) throw InvalidRequest(fmt::format("{}", fmt::join(problems, "; ")));
}

void add_recording(WarmSet& set, const Engine& engine, const std::string& file,
                   const std::vector<DeviceFacts>& devices, WarmTrouble& trouble) {
  const Recording recording = Recording::read(
      file, trouble.problems, [&](const KernelRecord& record) { add_record(set, engine, record, devices); });
  if (recording.torn_lines > 0)
    trouble.torn.push_back(fmt::format(
        "{}: {} of its lines {} no JSON and skipped, the first is line {}; a program that was killed while "
        "it recorded leaves such, and records again what it asks for again",
        file, recording.torn_lines, recording.torn_lines == 1 ? "is" : "are", recording.first_torn_line));
}

}  // namespace

WarmArgs::WarmArgs() : jobs(std::max(1u, std::thread::hardware_concurrency())) {}

void add_warm_args(Arguments& arguments, WarmArgs& args) {
  add_request_args(arguments, args.request, false);
  arguments.repeated("--from", args.files, "FILE.json", "A file of requests; may be repeated");
  arguments.repeated("--recording", args.recordings, "FILE",
                     "What a program asked for under JITSMITH_RECORD=FILE; lines that a crash tore are "
                     "skipped and told, and are no failure; may be repeated");
  arguments.flag("--all", args.all, "Every candidate of every op");
  arguments.comma_separated("--arch", args.archs, "ARCH,...",
                            "Architectures, as sm_90a,sm_100a; host is one. A recording has its own: without "
                            "--arch exactly what was recorded is warmed");
  arguments.text("--device", args.device, "NAME",
                 "A named device to choose for, of one of the architectures");
  arguments.text("--into", args.bundle, "FILE", "Also write all of it, and nothing else, to a bundle file");
  arguments.count("--jobs", args.jobs, 1024, "N", "Worker processes, each of which compiles one at a time");
  arguments.flag("--dry-run", args.dry_run,
                 "Compile nothing, say what is missing; exit status 1 if anything is");
  arguments.flag("--json", args.json, "Print JSON, at the end");
}

WarmSet wanted(const Engine& engine, const WarmArgs& args, WarmTrouble& trouble) {
  check(args);
  std::vector<std::string> all_files = args.files;
  all_files.insert(all_files.end(), args.recordings.begin(), args.recordings.end());
  const std::vector<FileRequest> from_files = read_requests(engine, args.files);
  WarmSet set(engine);
  const std::vector<DeviceFacts> devices = devices_for(args);
  for (const DeviceFacts& device : devices) {
    if (!args.request.op.empty())
      set.add({args.request.op, args.request.typed(engine.op(args.request.op).request)}, device,
              args.request.forced());
    for (const auto& [request, place] : from_files)
      at(place, [&, &request = request] { set.add(request, device); });
    if (args.all)
      for (const Op* op : engine.ops()) set.add_all(*op, device);
  }
  for (const std::string& file : args.recordings) add_recording(set, engine, file, devices, trouble);
  if (set.items().empty() && set.without_kernel() == 0 && trouble.problems.empty())
    trouble.problems.push_back(
        fmt::format("{} {} no request and no record, so nothing is warmed; give one that has some",
                    fmt::join(all_files, " and "), all_files.size() == 1 ? "has" : "have"));
  return set;
}

}  // namespace jitsmith
