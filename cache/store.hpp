// Gets, puts, removes and lists entries in one opened and vetted directory.
//
// A get returns right bytes or nothing: the entry must verify as a whole, and its key text must equal the
// wanted one byte for byte; the digest is only an address. A put makes the whole entry appear at once or not
// at all. Every trouble is counted under its cause and told to the event sink; none is thrown, except
// std::bad_alloc. Thread safe, also between processes: no lock is held during input or output.
#pragma once

#include <jitsmith/cache/clock.hpp>
#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/stats.hpp>
#include <jitsmith/cache/write_gate.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace jitsmith {

enum class PutResult {
  stored,
  off,     // not tried: there is no cache directory, or it cannot be written
  failed,  // tried or rejected; the statistics say why
};

struct ListedEntry {
  Digest digest;  // from the name
  std::uint64_t size_bytes = 0;
  std::chrono::system_clock::time_point last_used;  // to the hour
  std::string problem;  // empty when the entry verifies; otherwise the rest is not set
  EntryKind kind = EntryKind::cubin;
  std::string key_text;
  std::string facts;
};

struct ClearResult {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;  // files that could not be removed
};

class Store {
 public:
  // What the store works with; all of it must outlive the store.
  struct Context {
    FileSystem& file_system;
    const Clock& clock;
    CacheCounters& counters;
    const EventSink& events;
  };

  Store(const Context& context, Descriptor entries);

  std::optional<Entry> get(std::string_view key_text, const Digest& digest);

  // `digest` is digest_of(entry.key_text), unless a test wants two keys at one address.
  PutResult put(const Entry& entry, const Digest& digest);

  // True when the entry is gone, also when it was not there.
  bool remove(const Digest& digest);

  // Reads and verifies every entry, in order of digest. Removes and counts nothing.
  void list(const std::function<void(const ListedEntry&)>& visit) const;

  // Removes entries and temporary files, and nothing whose name is not exactly one of ours.
  ClearResult clear();

  // Whether and why puts are not tried at present.
  std::optional<WriteGate::Closed> writes_closed() const { return gate_.closed(context_.clock.steady()); }
  void close_writes(int error) { gate_.note_failure(error, context_.clock.steady()); }

 private:
  int publish(const Digest& digest, std::span<const std::byte> bytes);
  void note_unreadable(const Digest& digest, int error, Vetting vetting);
  void note_undecodable(const Digest& digest, int shard, const PrivateFile& read, DecodeFault fault);
  void note_refused(const Digest& digest, std::string_view why);
  PutResult note_write_failure(const Digest& digest, int error);
  bool is_known_bad(const Digest& digest) const;
  void set_known_bad(const Digest& digest, bool bad);
  PrivateDirectory open_shard(const std::string& name, IfMissing if_missing) const;
  void tell(EventLevel level, std::string_view what, std::string text) const;

  Context context_;
  Descriptor entries_;
  WriteGate gate_;
  mutable std::mutex known_bad_mutex_;
  std::unordered_set<Digest> known_bad_;  // damaged entries that could not be removed
};

}  // namespace jitsmith
