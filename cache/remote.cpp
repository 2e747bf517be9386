#include <jitsmith/cache/remote.hpp>

#include <jitsmith/cache/redis_url.hpp>

#ifdef JITSMITH_HAS_REDIS
#include <jitsmith/cache/redis_remote.hpp>
#endif

#include <utility>

namespace jitsmith {
namespace {

// Off from the start, and says why.
class NoRemote final : public Remote {
 public:
  NoRemote(std::string endpoint, std::string reason) {
    state_.configured = true;
    state_.endpoint = std::move(endpoint);
    state_.reason = std::move(reason);
  }
  std::optional<Entry> get(std::string_view, const Digest&) override { return std::nullopt; }
  void put(const Entry&, const Digest&) override {}
  bool ping() override { return false; }
  RemoteState state() const override { return state_; }

 private:
  RemoteState state_;
};

}  // namespace

std::unique_ptr<Remote> make_remote([[maybe_unused]] const CacheContext& context,
                                    const RemoteOptions& options) {
  if (options.url.empty()) return nullptr;
  ParsedRedisUrl parsed = parse_redis_url(options.url);
  if (!parsed.url) return std::make_unique<NoRemote>("", std::move(parsed.refusal));
#ifdef JITSMITH_HAS_REDIS
  if (parsed.url->tls && !has_redis_tls())
    return std::make_unique<NoRemote>(parsed.url->endpoint(),
                                      "this build has no TLS for Redis (hiredis_ssl), which rediss:// needs: "
                                      "build jitsmith with it, or use redis:// through a tunnel");
  return std::make_unique<RedisRemote>(context, *std::move(parsed.url), options);
#else
  return std::make_unique<NoRemote>(parsed.url->endpoint(),
                                    "this build has no Redis support (hiredis): build jitsmith with "
                                    "-DJITSMITH_REDIS=ON to use a remote tier");
#endif
}

}  // namespace jitsmith
