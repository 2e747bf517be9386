// jitsmith doctor: what was found on this machine, and what was not and why. One JSON value holds the
// findings; the text is a rendering of it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/cache/plural.hpp>
#include <jitsmith/cache/redis_url.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/tuning_table.hpp>
#include <jitsmith/tools/cache_facts.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/output.hpp>
#include <jitsmith/tools/target_option.hpp>

namespace jitsmith {
namespace {

Json gpu(const Options& options) {
  const Gpu gpu = find_gpu(options);
  if (!gpu.facts) return {{"found", false}, {"reason", gpu.why_not}};
  return {{"found", true},
          {"name", gpu.facts->name},
          {"arch", gpu.facts->target.arch},
          {"multiprocessors", gpu.facts->multiprocessors},
          {"memory_gb_per_s", gpu.facts->memory_gb_per_s}};
}

Json nvrtc(const Options& options) {
  try {
    NvrtcCompiler compiler(options.nvrtc, options.nvrtc_options);
    return {{"found", true},
            {"path", compiler.library_path()},
            {"version", compiler.version()},
            {"archs", compiler.supported_archs()}};
  } catch (const CompileError& error) {
    return {{"found", false}, {"reason", error.what()}};
  }
}

Json host_compiler(const Options& options) {
  try {
    HostCompiler compiler(options.host_compiler);
    return {{"found", true}, {"path", compiler.compiler_path()}, {"identity", compiler.identity()}};
  } catch (const CompileError& error) {
    return {{"found", false}, {"reason", error.what()}};
  }
}

Json cache(const Options& options) {
  CacheOptions quiet = options.cache_options();
  quiet.events = {};     // the report says it all
  quiet.lock_wait = {};  // a lock is only tried
  Cache cache(std::move(quiet));
  return cache_facts(cache);
}

// What each planned kernel is written down in, when that is asked for.
Json recording(const Options& options) {
  if (options.record.empty()) return {{"path", ""}};
  Json json{{"path", options.record}, {"writable", true}};
  const std::filesystem::path file = options.record;
  const bool exists = ::access(file.c_str(), F_OK) == 0;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  if (exists && !std::filesystem::is_regular_file(file, ignored)) {
    json["writable"] = false;
    json["reason"] = file.string() + " is no regular file; set JITSMITH_RECORD to one, or to a new name";
  } else if (::access(exists ? file.c_str() : folder.c_str(), exists ? R_OK | W_OK : W_OK) != 0) {
    json["writable"] = false;
    json["reason"] = fmt::format("{} cannot be written ({}); set JITSMITH_RECORD to a file that can",
                                 (exists ? file : folder).string(), std::strerror(errno));
  }
  return json;
}

Json tuning_table(const Options& options) {
  if (options.tuning_table.empty()) return {{"path", ""}};
  std::vector<std::string> problems;
  const TuningTable table = TuningTable::read(options.tuning_table, problems);
  return {{"path", options.tuning_table}, {"rows", table.rows().size()}, {"problems", problems}};
}

// What may be printed of it; nothing of a URL that is not understood, for the password can stand anywhere in
// it.
std::string without_credentials(std::string_view url) {
  const ParsedRedisUrl parsed = parse_redis_url(url);
  if (!parsed.url) return "(hidden: " + parsed.refusal + ")";
  return parsed.url->endpoint() + (parsed.url->has_credentials() ? " (user or password hidden)" : "");
}

// Everything that begins with JITSMITH_, so that a misspelt name is seen as well, and what steers the
// searches.
Json environment() {
  constexpr const char* others[] = {
      "NVRTC_APPEND_FLAGS=", "CUDA_HOME=",      "CUDA_PATH=", "CUDA_VISIBLE_DEVICES=",
      "LD_LIBRARY_PATH=",    "XDG_CACHE_HOME=", "TMPDIR="};
  Json json = Json::object();
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string_view text = *item;
    const auto begins = [text](std::string_view prefix) { return text.starts_with(prefix); };
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !(begins("JITSMITH_") || std::ranges::any_of(others, begins)))
      continue;
    // A URL under a misspelt name holds a password too.
    const std::string_view value = text.substr(equals + 1);
    const bool secret = (begins("JITSMITH_REMOTE") && !begins("JITSMITH_REMOTE_MODE=")) ||
                        value.find("://") != std::string_view::npos;
    json[std::string(text.substr(0, equals))] = secret ? without_credentials(value) : std::string(value);
  }
  return json;
}

std::string text_of(const Json& json, const char* key) {
  return json[key].get<std::string>();
}

void print_facts(const Json& report) {
  const auto line = [](std::string_view name, std::string_view text) {
    print(fmt::format("{:<15} {}\n", name, text));
  };
  const auto missing = [](const Json& part) { return "not found: " + text_of(part, "reason"); };

  const Json& gpu = report["gpu"];
  line("GPU", !gpu["found"] ? missing(gpu)
                            : fmt::format("{}, {}, {} multiprocessors, {:.0f} GB/s", text_of(gpu, "name"),
                                          text_of(gpu, "arch"), gpu["multiprocessors"].get<int>(),
                                          gpu["memory_gb_per_s"].get<double>()));
  const Json& nvrtc = report["nvrtc"];
  line("NVRTC", !nvrtc["found"]
                    ? missing(nvrtc)
                    : fmt::format("{}, {}\n{:16}for {}", text_of(nvrtc, "version"), text_of(nvrtc, "path"),
                                  "", fmt::join(nvrtc["archs"].get<std::vector<std::string>>(), " ")));
  const Json& host = report["host_compiler"];
  line("host compiler", !host["found"]
                            ? missing(host)
                            : fmt::format("{}, {}", text_of(host, "path"), text_of(host, "identity")));
  const Json& cache = report["cache"];
  line("cache", cache.contains("reason")
                    ? fmt::format("{}: {}", text_of(cache, "state"), text_of(cache, "reason"))
                    : fmt::format("{}, {}", text_of(cache, "state"), text_of(cache, "path")));
  print(text_of_tiers(cache, 15));
  if (report["cold"]) line("cold mode", "no tier of the cache is used; unset JITSMITH_COLD to keep kernels");
  const Json& record = report["record"];
  if (record.contains("writable"))
    line("recording", fmt::format("{}{}", text_of(record, "path"),
                                  record.contains("reason") ? ": " + text_of(record, "reason") : ""));
  line("policy", text_of(report, "policy"));
  const Json& table = report["tuning_table"];
  if (!table.contains("rows")) {
    line("tuning table", "none of your own (JITSMITH_TABLE)");
  } else {
    line("tuning table",
         fmt::format("{}, {}", text_of(table, "path"), plural(table["rows"].get<std::size_t>(), "row")));
    for (const Json& problem : table["problems"]) line("", problem.get<std::string>());
  }
  for (const auto& [name, value] : report["environment"].items())
    line("environment", fmt::format("{}={}", name, value.get<std::string>()));
}

int doctor(const Options& options, bool as_json) {
  const Json report{{"gpu", gpu(options)},
                    {"nvrtc", nvrtc(options)},
                    {"host_compiler", host_compiler(options)},
                    {"cache", cache(options)},
                    {"cold", options.cold},
                    {"record", recording(options)},
                    {"policy", options.policy == Policy::cached_only ? "cached_only" : "compile"},
                    {"tuning_table", tuning_table(options)},
                    {"environment", environment()}};
  as_json ? print_json(report) : print_facts(report);
  if (report["nvrtc"]["found"] || report["host_compiler"]["found"]) return k_success;
  // A production image has neither, and wants none.
  if (options.policy == Policy::cached_only) return k_success;
  complain("nothing can be compiled: there is neither NVRTC nor a host compiler; install one of them");
  return k_failure;
}

}  // namespace

SubCommand doctor_command(Arguments& app) {
  Arguments arguments = app.sub_command("doctor", "What was found on this machine, and what was not and why");
  const auto as_json = std::make_shared<bool>(false);
  arguments.flag("--json", *as_json, "Print JSON");
  return {arguments, [as_json](const Options& options) { return doctor(options, *as_json); }};
}

}  // namespace jitsmith
