// Census: what the cache directory and the bundles hold, by key field: to serve kernels of a compiler that is
// not here, and to say what is there when the wanted kernel is not. Private.
//
// Taking one reads every entry, so it belongs on the slow path alone. It counts them all and knows where each
// is. To say which is nearest it keeps the fields of a bounded number of keys, each distinct text once, and
// nothing of the code.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/jit/key_fields.hpp>
#include <jitsmith/jit/target.hpp>

namespace jitsmith {

class Census {
 public:
  using Counts = std::map<std::string, std::size_t, std::less<>>;

  static constexpr std::size_t k_most_compared = 65'536;  // by nearest(): some 60 MB

  // Throws std::bad_alloc and nothing else.
  static Census take(const Cache& cache);

  // The first of equal keys counts.
  void add(std::string_view key_text, Tier tier);

  std::size_t size() const { return tiers_.size(); }
  std::size_t compared() const { return entries_.size(); }  // by nearest()

  // Where the entry of the key with this digest is.
  std::optional<Tier> find(const Digest& key) const;

  // The toolchains that compiled for the executor, those with most entries first.
  std::vector<std::string> toolchains(Executor executor) const;

  // The architectures for which there are entries of the template, and how many.
  Counts archs_of(std::string_view template_path) const;

  // Of those that are compared, the entry whose key differs least from `wanted`. Another template weighs more
  // than another target, and that more than anything else.
  struct Nearest {
    Tier tier = Tier::directory;
    KeyFields fields;                          // views into the census
    std::vector<FieldDifference> differences;  // views into `wanted` and the census; none: the very key
  };
  std::optional<Nearest> nearest(const KeyFields& wanted) const;

 private:
  struct Entry {
    Tier tier;
    KeyFields fields;  // views into texts_
  };

  std::string_view keep(std::string_view text);

  // Of all entries. Of templates, architectures and toolchains there are few.
  std::unordered_map<Digest, Tier> tiers_;
  std::map<std::string, Counts, std::less<>> archs_;  // by template
  std::map<Executor, Counts> toolchains_;

  // Of those that are compared.
  std::set<std::string, std::less<>> texts_;
  std::vector<Entry> entries_;
};

// "sm_90a", for a key whose target is "cuda sm_90a".
std::string_view arch_of(const KeyFields& fields);

// "the cache and 2 bundles hold 14 kernels of this template for sm_90a and none for sm_100a; the nearest
// differs in parameter.threads (128, not 64) and toolchain": the middle of a message to people.
std::string describe_holdings(const Census& census, const Cache& cache, const KeyFields& wanted);

// "parameter.threads (128, not 64) and toolchain"
std::string describe(const std::vector<FieldDifference>& differences);

}  // namespace jitsmith
