#include <jitsmith/tools/warm_report.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include <jitsmith/cache/plural.hpp>
#include <jitsmith/jit/lines.hpp>
#include <jitsmith/tools/json.hpp>
#include <jitsmith/tools/losses.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

std::size_t count(const WarmRun& run, WarmOutcome outcome) {
  return static_cast<std::size_t>(std::ranges::count(run.results, outcome, &WarmResult::outcome));
}

Json json_of(const Specialisation& item, const WarmResult& result) {
  Json json{{"op", item.op},
            {"arch", item.target.arch},
            {"variant", item.variant->name},
            {"params", jitsmith::json_of(item.params)},
            {"outcome", to_string(result.outcome)}};
  if (result.outcome == WarmOutcome::compiled) json["milliseconds"] = result.milliseconds;
  if (!result.not_stored.empty()) json["not_stored"] = result.not_stored;
  if (!result.not_shared.empty()) json["not_shared"] = result.not_shared;
  if (result.outcome != WarmOutcome::failed) return json;
  json["error"] = result.error;
  if (!result.log.empty()) json["log"] = result.log;
  if (!result.complaints.empty()) json["stderr"] = result.complaints;
  return json;
}

void print_as_json(const WarmReport& report) {
  Json json{{"kernels", Json::array()}};
  for (std::size_t i = 0; i < report.run.results.size(); ++i)
    json["kernels"].push_back(json_of(report.set.items()[i], report.run.results[i]));
  for (const WarmOutcome outcome : {WarmOutcome::cached, WarmOutcome::compiled, WarmOutcome::missing,
                                    WarmOutcome::failed, WarmOutcome::unfinished})
    json[std::string(to_string(outcome))] = count(report.run, outcome);
  json["requests_without_kernel"] = report.set.without_kernel();
  json["problems"] = report.trouble.problems;
  json["torn"] = report.trouble.torn;
  json["interrupted"] = report.interrupted;
  json["peak_worker_bytes"] = report.run.peak_memory_bytes;
  if (!report.run.trouble.empty()) json["trouble"] = report.run.trouble;
  if (!report.why_no_bundle.empty()) json["why_no_bundle"] = report.why_no_bundle;
  if (report.bundle) json["bundle"] = {{"entries", report.bundle->entries}, {"bytes", report.bundle->bytes}};
  print_json(json);
}

void print_as_text(const WarmReport& report) {
  std::string text =
      fmt::format("{}: {} already cached, {} compiled, {} missing, {} failed",
                  plural(report.run.results.size(), "kernel"), count(report.run, WarmOutcome::cached),
                  count(report.run, WarmOutcome::compiled), count(report.run, WarmOutcome::missing),
                  count(report.run, WarmOutcome::failed));
  if (const std::size_t unfinished = count(report.run, WarmOutcome::unfinished); unfinished > 0)
    text += fmt::format(", {} not reached", unfinished);
  if (report.set.without_kernel() > 0)
    text += fmt::format("; {} without a kernel (declined or empty)",
                        plural(report.set.without_kernel(), "request"));
  if (report.bundle)
    text += fmt::format("; bundle of {}, {}", plural(report.bundle->entries, "entry"),
                        size_text(report.bundle->bytes));
  print(text + '\n');
}

// Indented below the sentence that it belongs to.
void print_block(std::string_view title, std::string_view text) {
  if (text.empty()) return;
  std::string block = fmt::format("  {}:\n", title);
  for (const std::string_view line : lines_of(text)) block += fmt::format("    {}\n", line);
  std::fwrite(block.data(), 1, block.size(), stderr);
}

void complain_of_failures(const WarmReport& report) {
  for (std::size_t i = 0; i < report.run.results.size(); ++i) {
    const WarmResult& result = report.run.results[i];
    if (result.outcome != WarmOutcome::failed) continue;
    complain(fmt::format("{} failed: {}", to_string(report.set.items()[i]), result.error));
    print_block("the compiler", result.log);
    print_block("its standard error", result.complaints);
  }
}

void complain_of_losses(const WarmRun& run) {
  std::map<std::string, std::size_t> not_stored;  // kernels by why
  for (const WarmResult& result : run.results)
    if (!result.not_stored.empty()) ++not_stored[result.not_stored];
  for (const auto& [why, kernels] : not_stored)
    complain(fmt::format("{} compiled but not stored: {}", plural(kernels, "kernel"), why));

  const auto unshared = [](const WarmResult& result) { return !result.not_shared.empty(); };
  const auto first = std::ranges::find_if(run.results, unshared);
  if (first == run.results.end()) return;
  const std::size_t compiled = count(run, WarmOutcome::compiled);
  complain(unshared_text(compiled - static_cast<std::size_t>(std::ranges::count_if(run.results, unshared)),
                         compiled, "kernel", first->not_shared));
}

}  // namespace

bool complete(const WarmRun& run) {
  return std::ranges::all_of(run.results, [](const WarmResult& result) {
    return result.outcome == WarmOutcome::cached ||
           (result.outcome == WarmOutcome::compiled && result.not_stored.empty());
  });
}

void print_report(const WarmReport& report, bool as_json) {
  for (const auto* sentences : {&report.trouble.problems, &report.trouble.torn})
    for (const std::string& sentence : *sentences) complain("warning: " + sentence);
  as_json ? print_as_json(report) : print_as_text(report);
  std::fflush(stdout);  // so that what follows on standard error is read last
  complain_of_failures(report);
  complain_of_losses(report.run);
  if (!report.run.trouble.empty())
    complain(fmt::format("no worker process can be started: {}; see what limits processes here, or try again",
                         report.run.trouble));
  if (!report.why_no_bundle.empty()) complain(report.why_no_bundle);
}

}  // namespace jitsmith
