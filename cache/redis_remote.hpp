// The remote tier on a Redis server: key "jitsmith:v1:<32 hex>", value the encoded entry.
//
// One connection for all threads, made at first need and again after trouble. An operation waits for its turn
// no longer than for the server; one that does not get it is skipped.
#pragma once

#include <jitsmith/cache/context.hpp>
#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/cache/redis_connection.hpp>
#include <jitsmith/cache/redis_url.hpp>
#include <jitsmith/cache/remote.hpp>
#include <jitsmith/cache/remote_gate.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace jitsmith {

class RedisRemote final : public Remote {
 public:
  // Connects to nothing yet. Precondition: the URL wants no TLS, or has_redis_tls().
  RedisRemote(const CacheContext& context, RedisUrl url, const RemoteOptions& options);

  std::optional<Entry> get(std::string_view key_text, const Digest& digest) override;
  void put(const Entry& entry, const Digest& digest) override;
  bool ping() override;
  RemoteState state() const override;

 private:
  using Operation = RemoteGate::Operation;
  using Change = RemoteGate::Change;
  using Command = std::span<const std::string_view>;
  enum class InPause { skip, try_anyway };

  // The reply, of that kind, or nil where bytes are expected; nothing when there is none, which is counted
  // and told.
  std::optional<RedisReply> ask(Operation operation, InPause in_pause, Command command,
                                RedisReply::Kind expected);
  std::unique_lock<ForkMutex> wait_for_turn(Operation operation,
                                            InPause in_pause);  // perhaps without the lock
  RedisAnswer converse(Command command);
  void tell_failure(RedisFailure failure, Change change) const;
  void tell_damage(const Digest& digest, std::string_view what) const;
  std::string sentence(RedisFailure failure, Change change) const;

  const CacheContext context_;
  const RedisUrl url_;
  const std::string endpoint_;
  const RemoteOptions options_;  // without the URL
  RemoteGate gate_;
  ForkMutex mutex_;  // guards what follows
  ForkCheck fork_check_;
  TlsTrust trust_;
  std::unique_ptr<RedisConnection> connection_;
};

}  // namespace jitsmith
