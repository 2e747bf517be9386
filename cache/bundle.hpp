// Bundle: a read-only set of entries that ships with a program or a container image. It is either a cache
// directory (of root or of the user, not writable by others) or one file, made by `jitsmith cache export`.
//
// A bundle is read, never mapped; its entries verify like those of the cache directory, and a bad one is
// skipped. Nothing is ever written to it. Trouble is counted and told; none is thrown but std::bad_alloc.
// Thread safe.
#pragma once

#include <jitsmith/cache/bundle_file.hpp>
#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/listed_entry.hpp>
#include <jitsmith/cache/store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace jitsmith {

struct BundleState {
  std::string path;
  bool usable = false;
  std::string reason;  // one sentence, unless usable
};

class Bundle {
 public:
  // Opens and vets `path`, which must be absolute. Never fails: a bundle that cannot be used says why, and
  // holds nothing.
  Bundle(const CacheContext& context, const std::string& path);

  const BundleState& state() const { return state_; }

  std::optional<Entry> get(std::string_view key_text, const Digest& digest);

  // Reads and verifies every entry, in order of digest.
  void list(const EntryVisitor& visit) const;

 private:
  BundleState state_;
  std::unique_ptr<Store> directory_;  // one of these two, when usable
  std::unique_ptr<BundleFile> file_;
};

}  // namespace jitsmith
