// Gets, puts, removes and lists entries in one opened and vetted directory.
//
// A get returns right bytes or nothing: the entry must verify as a whole, and its key text must equal the
// wanted one byte for byte; the digest is only an address. A put makes the whole entry appear at once or not
// at all. Every trouble is counted under its cause and told to the event sink; none is thrown, except
// std::bad_alloc. Thread safe, also between processes, and usable in a forked child: no get waits for a
// lock, and no put longer than a quarter of a second, for another one that trims.
#pragma once

#include <jitsmith/cache/build_lock.hpp>
#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/listed_entry.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/trim.hpp>
#include <jitsmith/cache/usage.hpp>
#include <jitsmith/cache/write_gate.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

namespace jitsmith {

enum class PutResult {
  stored,
  off,     // not tried: there is no cache directory, it cannot be written, or a later version has the place
  failed,  // tried or rejected; the statistics say why
};

struct ClearResult {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;  // files that could not be removed
};

// How a store may be treated: a bundle is somebody else's, and is only ever read: not written, repaired,
// cleaned, locked, nor marked as used. Who only looks at his own treats it so as well.
enum class StoreAccess { own, look_only, read_only };

class Store {
 public:
  Store(const CacheContext& context, Descriptor entries, StoreAccess access = StoreAccess::own,
        const CacheLimits& limits = {});

  std::optional<Entry> get(std::string_view key_text, const Digest& digest);

  // `digest` is digest_of(entry.key_text), unless a test wants two keys at one address.
  PutResult put(const Entry& entry, const Digest& digest);

  // True when the entry is gone, also when it was not there. Only from a store that may be changed.
  bool remove(const Digest& digest);

  // Reads and verifies every entry, in order of digest. Removes and counts nothing.
  void list(const EntryVisitor& visit) const;

  // Removes entries and temporary files, and nothing whose name is not exactly one of ours.
  ClearResult clear();

  // Tries to lock the key for a compile, for at most `max_wait`; `what` is named in the message when that
  // takes long. Ask the store again then. The lock excludes threads as well. Where nothing can
  // be stored at present it is unavailable at once: those who wait would compile one after another.
  BuildLock lock_build(const Digest& digest, std::string_view what, std::chrono::milliseconds max_wait);

  // Brings the directory under `limits`, and sweeps what dead writers left. A put that exceeds the store's
  // own limits does this by itself. A dry run changes nothing, and takes no lock.
  TrimResult trim(const CacheLimits& limits, TrimMode mode);

  // Whether and why puts are not tried at present.
  std::optional<WriteGate::Closed> writes_closed() const { return gate_.closed(context_.clock.steady()); }
  void close_writes(int error) { gate_.note_failure(error, context_.clock.steady()); }

 private:
  // A file whose name is exactly one of ours, in the shard where it belongs.
  struct OwnFile {
    int shard = -1;  // a descriptor
    const char* name = "";
    std::optional<Digest> digest;  // none: a temporary file
    int error = 0;                 // of the stat, which is not set then
    struct ::stat stat {};
  };
  struct TrimOrder {
    CacheLimits limits;
    std::uint64_t room_bytes = 0;  // on a full disk: the size of the entry that found no room
  };
  struct Sighting;

  int publish(const Digest& digest, std::span<const std::byte> bytes);
  int publish_or_make_room(const Digest& digest, std::span<const std::byte> bytes);
  int unlink_entry(const PrivateDirectory& shard, const Digest& digest);
  void note_unreadable(const Digest& digest, int error, Vetting vetting);
  void note_undecodable(const Digest& digest, int shard, const PrivateFile& read, const Decoded& decoded);
  void note_mismatched(const Digest& digest);
  void note_refused(const Digest& digest, std::string_view why);
  PutResult note_write_failure(const Digest& digest, int error);
  bool is_known_bad(const Digest& digest) const;
  void set_known_bad(const Digest& digest, bool bad);
  PrivateDirectory open_shard(const std::string& name, IfMissing if_missing) const;

  // Calls `visit` for every file of ours in every `step`-th shard, one after another, opening none. The
  // errors of shards that cannot be read; what was read of them is visited all the same.
  ErrorCounts walk(const std::function<void(const OwnFile&)>& visit, unsigned step = 1) const;

  // store_trim.cpp
  void note_stored(std::uint64_t size_bytes);
  TrimResult trim_as_only_one(const TrimOrder& order, std::chrono::milliseconds patience);
  std::optional<TrimResult> trim_unless_busy(const TrimOrder& order);
  TrimResult trim_now(const TrimOrder& order, TrimMode mode);
  UsageEstimate::Due scan();
  Sighting look(TrimMode mode, bool with_entries, TrimResult& result, unsigned step);
  void remove_oldest(Sighting& seen, const Usage& goal, TrimMode mode, TrimResult& result);
  void remove_batch(Sighting& seen, std::size_t begin, std::size_t end, TrimMode mode, TrimResult& result);
  void sweep(const OwnFile& file, TrimMode mode, TrimResult& result);
  void note_trim_failure(int error, TrimMode mode, TrimResult& result);
  void tell_trimmed(const TrimResult& result, const TrimOrder& order);

  // store_lock.cpp: the file of byte locks, newly opened; not open when there is none, which is then counted.
  Descriptor open_locks();
  bool is_there(const Digest& digest) const;

  CacheContext context_;
  Descriptor entries_;
  StoreAccess access_;
  CacheLimits limits_;
  WriteGate gate_;
  UsageEstimate usage_;
  ForkMutex tidying_;                         // held, never waited for, by the one thread that scans or trims
  std::atomic<bool> room_is_no_help_{false};  // the disk stayed full although a trim removed something
  // Entries of a later version: two versions that replaced each other's would both compile at every start.
  ForkGuarded<std::unordered_set<Digest>> left_alone_;
  mutable ForkGuarded<std::unordered_set<Digest>> known_bad_;  // damaged entries that could not be removed
};

}  // namespace jitsmith
