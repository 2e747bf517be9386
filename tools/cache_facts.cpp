#include <jitsmith/tools/cache_facts.hpp>

#include <cstring>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include <jitsmith/cache/plural.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

// Below it hardly an entry can be stored.
constexpr std::uintmax_t k_full_disk_bytes = 1 << 20;

Json directory_facts(const Cache& cache) {
  const DirectoryState state = cache.state();
  Json json{{"state", to_string(state.status)}, {"path", state.path}};
  if (!state.reason.empty()) json["reason"] = state.reason;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(state.path, error);
  if (state.status != DirectoryStatus::off && !error) {
    json["free_bytes"] = space.available;
    if (state.status == DirectoryStatus::usable && space.available < k_full_disk_bytes)
      json["reason"] = fmt::format(
          "the disk of {} has only {} left, so new kernels may not be stored; free some space, or set "
          "JITSMITH_CACHE_DIR to a directory on another one",
          state.path, size_text(space.available));
  }
  json["limits"] = {{"bytes", cache.limits().max_bytes}, {"entries", cache.limits().max_entries}};
  return json;
}

// A key that nobody compiles, so that nobody is held up.
Digest random_digest() {
  std::random_device random;
  const auto word = [&random] { return std::uint64_t{random()} << 32 | random(); };
  const std::uint64_t high = word();
  return {high, word()};
}

std::string lock_facts(Cache& cache) {
  const BuildLock lock = cache.lock_build(random_digest(), "doctor");
  if (lock.outcome == LockOutcome::held) return "work";
  if (lock.outcome == LockOutcome::timed_out) return "are held by another process";
  if (cache.state().status == DirectoryStatus::off)
    return "are not to be had: there is no directory to lock in";
  const ErrorCounts failures = cache.stats().lock_failed;
  return fmt::format("are not to be had ({}): processes that miss the same kernel all compile it",
                     failures.empty() ? "the directory has none" : std::strerror(failures.begin()->first));
}

Json bundle_facts(const Cache& cache) {
  Json all = Json::array();
  std::size_t index = 0;
  for (const BundleState& bundle : cache.bundle_states()) {
    Json json{{"path", bundle.path}, {"state", bundle.usable ? "usable" : "refused"}};
    if (!bundle.usable) json["reason"] = bundle.reason;
    std::size_t entries = 0;
    cache.list_bundle(index++, [&entries](const ListedEntry&) { ++entries; });
    if (bundle.usable) json["entries"] = entries;
    all.push_back(std::move(json));
  }
  return all;
}

Json remote_facts(Cache& cache) {
  if (!cache.remote_state().configured) return {{"state", "none"}};
  const bool answers = cache.ping_remote();
  const RemoteState state = cache.remote_state();
  Json json{{"state", answers ? "answers" : state.usable ? "silent" : "off"}, {"endpoint", state.endpoint}};
  if (!state.reason.empty()) json["reason"] = state.reason;
  return json;
}

// There is none of a URL that is not understood, and the password can stand anywhere in it.
std::string endpoint_text(const Json& remote) {
  const auto endpoint = remote["endpoint"].get<std::string>();
  return endpoint.empty() ? "JITSMITH_REMOTE (hidden, for it may hold a password)" : endpoint;
}

}  // namespace

Json cache_facts(Cache& cache) {
  Json json = directory_facts(cache);
  json["locks"] = lock_facts(cache);
  json["bundles"] = bundle_facts(cache);
  json["remote"] = remote_facts(cache);
  return json;
}

std::string text_of_tiers(const Json& facts, int width) {
  std::string text;
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<{}} {}\n", name, width, value);
  };
  const auto bytes = facts["limits"]["bytes"].get<std::uint64_t>();
  const auto entries = facts["limits"]["entries"].get<std::uint64_t>();
  line("limits", fmt::format("{} size, {}", bytes == 0 ? "any" : size_text(bytes),
                             entries == 0 ? "any entries" : plural(entries, "entry")));
  line("locks", facts["locks"].get<std::string>());
  for (const Json& bundle : facts["bundles"])
    line("bundle",
         fmt::format("{}, {}", bundle["path"].get<std::string>(),
                     bundle.contains("entries") ? plural(bundle["entries"].get<std::size_t>(), "entry")
                                                : "refused: " + bundle["reason"].get<std::string>()));
  const Json& remote = facts["remote"];
  if (const auto state = remote["state"].get<std::string>(); state != "none")
    line("remote", fmt::format("{}, {}{}", endpoint_text(remote), state,
                               remote.contains("reason") ? ": " + remote["reason"].get<std::string>() : ""));
  return text;
}

}  // namespace jitsmith
