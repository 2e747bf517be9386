// What a decoded entry adds to a ListedEntry, in whichever tier it was found. Private.
#pragma once

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/listed_entry.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace jitsmith {

// The content, or the problem: `misplaced` is that of a sound entry which does not belong to listed.digest.
inline void set_content(ListedEntry& listed, Decoded decoded, std::string_view misplaced) {
  if (!decoded.entry) {
    listed.problem = describe_fault(decoded);
    listed.is_newer = !is_damage(decoded.fault);
  } else if (digest_of(decoded.entry->key_text) != listed.digest) {
    listed.problem = misplaced;
  } else {
    listed.kind = decoded.entry->kind;
    listed.key_text = std::move(decoded.entry->key_text);
    listed.facts = std::move(decoded.entry->facts);
  }
}

}  // namespace jitsmith
