// Why a tier did not take an entry that was put, and what to do about it: half a sentence for a message, told
// by what the statistics have counted since `before`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <jitsmith/cache/cache.hpp>

namespace jitsmith {

// Of the cache directory. The entry was asked for first, as a warm and an import do.
std::string why_not_stored(const Cache& cache, const CacheStats& before);

// Of the remote tier; "" when it took the entry, and when none is to be written.
std::string why_not_shared(const Cache& cache, RemoteMode mode, const CacheStats& before);

// "warning: the remote tier took 0 of 4 kernels: WHY": no failure, for they are stored all the same.
std::string unshared_text(std::size_t taken, std::size_t of, std::string_view noun, std::string_view why);

}  // namespace jitsmith
