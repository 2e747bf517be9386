#include <jitsmith/runtime/census.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/plural.hpp>

namespace jitsmith {
namespace {

constexpr std::size_t k_most_named = 4;  // differences in a message

// How much a field tells of two kernels being different things.
int weight_of(std::string_view name) {
  if (name == "template" || name == "function") return 32;
  if (name == "target") return 16;
  if (name == "instantiation") return 0;  // follows from template and parameters
  if (name == "toolchain") return 1;
  if (name.starts_with("option.")) return 1;  // the architecture is one of them
  return 2;
}

int distance(const std::vector<FieldDifference>& differences) {
  int sum = 0;
  for (const FieldDifference& difference : differences) sum += weight_of(difference.name);
  return sum;
}

bool is_for(std::string_view target, Executor executor) {
  return target.starts_with(executor == Executor::cuda ? "cuda " : "host ");
}

// "a, b and c"
std::string listed(const std::vector<std::string>& parts) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  return fmt::format("{} and {}", fmt::join(parts.begin(), parts.end() - 1, ", "), parts.back());
}

// "the cache and 2 bundles", and what is not used and why.
struct Places {
  std::string used, not_used;
  bool several = false;
};

Places places_of(const Cache& cache) {
  Places places;
  const DirectoryState directory = cache.state();
  std::size_t bundles = 0;
  for (const BundleState& bundle : cache.bundle_states()) {
    if (bundle.usable)
      ++bundles;
    else
      places.not_used += fmt::format(" (bundle {} is not used: {})", bundle.path, bundle.reason);
  }
  if (directory.status != DirectoryStatus::off)
    places.used = "the cache";
  else
    places.not_used += fmt::format(" (the cache directory is not used: {})", directory.reason);
  places.several = bundles > (places.used.empty() ? 1u : 0u);
  if (bundles > 0) places.used += (places.used.empty() ? "" : " and ") + plural(bundles, "bundle");
  return places;
}

}  // namespace

Census Census::take(const Cache& cache) {
  Census census;
  const auto visitor = [&census](Tier tier) {
    return [&census, tier](const ListedEntry& entry) {
      if (entry.problem.empty()) census.add(entry.key_text, tier);
    };
  };
  cache.list(visitor(Tier::directory));
  cache.list_bundles(visitor(Tier::bundle));
  return census;
}

std::string_view Census::keep(std::string_view text) {
  const auto place = texts_.find(text);
  return place != texts_.end() ? *place : *texts_.emplace(text).first;
}

void Census::add(std::string_view key_text, Tier tier) {
  if (!tiers_.emplace(digest_of(key_text), tier).second) return;
  Entry entry{tier, key_fields(key_text)};
  ++archs_[std::string(find_field(entry.fields, "template").value_or(""))]
          [std::string(arch_of(entry.fields))];
  const std::string_view target = find_field(entry.fields, "target").value_or("");
  if (const auto toolchain = find_field(entry.fields, "toolchain"))
    for (const Executor executor : {Executor::cuda, Executor::host})
      if (is_for(target, executor)) ++toolchains_[executor][std::string(*toolchain)];
  if (entries_.size() == k_most_compared) return;
  for (KeyField& field : entry.fields) field = {keep(field.name), keep(field.value)};
  entries_.push_back(std::move(entry));
}

std::vector<std::string> Census::toolchains(Executor executor) const {
  const auto counts = toolchains_.find(executor);
  if (counts == toolchains_.end()) return {};
  std::vector<std::pair<std::string_view, std::size_t>> order(counts->second.begin(), counts->second.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& [name, count] : order) names.emplace_back(name);
  return names;
}

Census::Counts Census::archs_of(std::string_view template_path) const {
  const auto place = archs_.find(template_path);
  return place == archs_.end() ? Counts() : place->second;
}

std::optional<Tier> Census::find(const Digest& key) const {
  const auto place = tiers_.find(key);
  return place == tiers_.end() ? std::nullopt : std::optional(place->second);
}

std::optional<Census::Nearest> Census::nearest(const KeyFields& wanted) const {
  std::optional<Nearest> best;
  int best_distance = 0;
  for (const Entry& entry : entries_) {
    std::vector<FieldDifference> found = differences(wanted, entry.fields);
    const int far = distance(found);
    if (best && (far > best_distance || (far == best_distance && found.size() >= best->differences.size())))
      continue;
    best_distance = far;
    best = {entry.tier, entry.fields, std::move(found)};
  }
  return best;
}

std::string_view arch_of(const KeyFields& fields) {
  return without_kind(find_field(fields, "target").value_or(""));
}

std::string describe(const std::vector<FieldDifference>& differences) {
  // The instantiation and the compiler's options say the parameters and the target once more.
  const auto names = [&](std::string_view prefix) {
    return std::ranges::any_of(differences, [&](const auto& d) { return d.name.starts_with(prefix); });
  };
  std::vector<std::string> parts;
  for (const FieldDifference& difference : differences) {
    if (difference.name == "instantiation" && (names("parameter.") || names("function"))) continue;
    if (difference.name.starts_with("option.") && names("target")) continue;
    parts.push_back(to_string(difference));
  }
  if (parts.size() > k_most_named + 1) {
    const std::string rest = fmt::format("{} more fields", parts.size() - k_most_named);
    parts.resize(k_most_named);
    parts.push_back(rest);
  }
  return listed(parts);
}

std::string describe_holdings(const Census& census, const Cache& cache, const KeyFields& wanted) {
  const Places places = places_of(cache);
  if (places.used.empty()) return "there is nothing to take it from" + places.not_used;
  std::string text = places.used + (places.several ? " hold " : " holds ");
  const std::optional<Census::Nearest> nearest = census.nearest(wanted);
  if (!nearest) return text + "no kernel" + places.not_used;

  const Census::Counts archs = census.archs_of(find_field(wanted, "template").value_or(std::string_view()));
  if (archs.empty())
    return fmt::format("{}{}, none of them of this template{}", text, plural(census.size(), "kernel"),
                       places.not_used);
  const std::string arch(arch_of(wanted));
  std::vector<std::pair<std::string, std::size_t>> counts(archs.begin(), archs.end());
  std::stable_partition(counts.begin(), counts.end(), [&](const auto& item) { return item.first == arch; });
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(parts.empty() ? fmt::format("{} of this template for {}", plural(count, "kernel"), name)
                                  : fmt::format("{} for {}", count, name));
  if (!archs.contains(arch)) parts.push_back("none for " + arch);
  const std::string which = census.compared() == census.size()
                                ? "the nearest"
                                : fmt::format("the nearest of the {} that were compared", census.compared());
  const std::string near = nearest->differences.empty()
                               ? "one of them is this very kernel, of whatever toolchain"
                               : which + " differs in " + describe(nearest->differences);
  return fmt::format("{}{}{}; {}", text, listed(parts), places.not_used, near);
}

}  // namespace jitsmith
