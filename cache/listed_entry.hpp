// An entry as the people and programs that look after a cache see it.
#pragma once

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace jitsmith {

struct ListedEntry {
  Digest digest;  // from the name or the index
  std::uint64_t size_bytes = 0;
  std::chrono::system_clock::time_point
      last_used;          // to the hour; of a bundle's entry: when the bundle was made
  std::string problem;    // empty when the entry verifies; otherwise the rest is not set
  bool is_newer = false;  // the problem is no damage: a later jitsmith wrote it, and it is left alone
  EntryKind kind = EntryKind::cubin;
  std::string key_text;
  std::string facts;
};

using EntryVisitor = std::function<void(const ListedEntry&)>;

}  // namespace jitsmith
