// What can be said of a cache and its tiers without looking at entries: for `cache stat` and `doctor`.
#pragma once

#include <string>

#include <jitsmith/cache/cache.hpp>
#include <jitsmith/tools/json.hpp>

namespace jitsmith {

// {"state", "path", "reason"?, "free_bytes"?, "limits": {"bytes", "entries"}, "locks",
//  "bundles": [{"path", "state", "reason"?, "entries"?}], "remote": {"state", "endpoint"?, "reason"?}}.
// Tries one lock, asks the remote tier for a sign of life, and counts the entries of the bundles. `reason` is
// one sentence wherever something is not as it should be. Nothing of it holds a user's name or password.
Json cache_facts(Cache& cache);

// The lines "NAME  TEXT" that say the same, names padded to `width`.
std::string text_of_tiers(const Json& facts, int width);

}  // namespace jitsmith
