#include <jitsmith/cache/redis_failure.hpp>

#include <jitsmith/cache/redis_tls.hpp>

#include <fmt/format.h>

#include <netdb.h>

#include <cstring>
#include <utility>

namespace jitsmith {

Consequence consequence_of(RedisFault fault) {
  switch (fault) {
    case RedisFault::tls_untrusted:
    case RedisFault::auth_refused:
    case RedisFault::auth_needed:
    case RedisFault::no_permission:
    case RedisFault::bad_database:
    case RedisFault::is_cluster:
      return Consequence::stop;
    case RedisFault::full:
    case RedisFault::cannot_persist:
      return Consequence::pause_writes;
    case RedisFault::is_replica:
    case RedisFault::no_write_permission:
      return Consequence::stop_writes;
    case RedisFault::holds_no_text:
      return Consequence::damaged_value;
    default:
      return Consequence::wait;
  }
}

std::string describe(RedisFailure failure) {
  switch (failure.fault) {
    case RedisFault::none:
      return "serves";
    case RedisFault::no_address:
      return fmt::format("has no address ({}): look at the host in its URL", ::gai_strerror(failure.detail));
    case RedisFault::no_resolver:
      return fmt::format("was not looked up ({}): a thread could not be started",
                         std::strerror(failure.detail));
    case RedisFault::slow_resolver:
      return "was not found in time: looking up its name took longer than connecting may take";
    case RedisFault::not_connected:
      return fmt::format("cannot be reached ({}): look whether it runs and listens at that port",
                         std::strerror(failure.detail));
    case RedisFault::slow_connect:
      return "took longer to connect than it may: look whether it runs and the network lets it be reached";
    case RedisFault::tls_refused:
      return "did not agree on TLS: look whether that port speaks it, or write redis:// for a plain one";
    case RedisFault::tls_untrusted:
      return fmt::format(
          "has a certificate that is not trusted ({}): it must be for the host in the URL, "
          "from an authority that this system trusts",
          describe_certificate_error(failure.detail));
    case RedisFault::tls_unavailable:
      return "was not asked: OpenSSL could not be set up";
    case RedisFault::io_error:
      return fmt::format("was cut off ({})", std::strerror(failure.detail));
    case RedisFault::closed:
      return "closed the connection";
    case RedisFault::timed_out:
      return "took longer to answer than an operation may take";
    case RedisFault::too_slow:
      return "answers so late that compiling is no slower: use one that is nearer or less busy";
    case RedisFault::too_large:
      return "answered with more than 64 MiB, the limit of an entry";
    case RedisFault::bad_protocol:
      return "answered with something that is no reply to the command: look whether it is a Redis server";
    case RedisFault::not_ready:
      return "is not ready to serve (loading, busy, or out of connections)";
    case RedisFault::refused_command:
      return "refused the command";
    case RedisFault::auth_refused:
      return "refused the user and password (AUTH): correct them in its URL";
    case RedisFault::auth_needed:
      return "asks for a password, or accepts local connections only: put user and password into its URL";
    case RedisFault::no_permission:
      return "does not let this user read (ACL): allow it at least ~jitsmith:* +get +ping +select";
    case RedisFault::no_write_permission:
      return "does not let this user write (ACL): allow it +set, or use the mode read_only";
    case RedisFault::bad_database:
      return "has no such database (SELECT was refused): correct the number at the end of its URL";
    case RedisFault::is_cluster:
      return "is part of a cluster, which is not supported: name a single server, or a proxy";
    case RedisFault::full:
      return "is out of memory: give it more (maxmemory), or let it evict (maxmemory-policy allkeys-lru)";
    case RedisFault::cannot_persist:
      return "takes no writes because it cannot save or replicate them: look at its log";
    case RedisFault::is_replica:
      return "is a read-only replica: name the primary, or use the mode read_only";
    case RedisFault::holds_no_text:
      return "holds something else than an entry under that key";
  }
  return "failed";
}

RedisFault fault_of_error_reply(std::string_view text) {
  // In the order of the list: a longer beginning stands before a shorter one.
  static constexpr std::pair<std::string_view, RedisFault> k_beginnings[] = {
      {"NOAUTH", RedisFault::auth_needed},
      {"DENIED", RedisFault::auth_needed},  // protected mode
      {"WRONGPASS", RedisFault::auth_refused},
      {"ERR invalid password", RedisFault::auth_refused},  // before Redis 6
      {"ERR Client sent AUTH", RedisFault::auth_refused},  // before Redis 6: none is set
      {"ERR AUTH", RedisFault::auth_refused},              // none is set
      {"NOPERM", RedisFault::no_permission},
      {"ERR DB index", RedisFault::bad_database},
      {"ERR invalid DB index", RedisFault::bad_database},
      {"ERR SELECT", RedisFault::is_cluster},  // "is not allowed in cluster mode"
      {"MOVED", RedisFault::is_cluster},
      {"ASK", RedisFault::is_cluster},
      {"CLUSTERDOWN", RedisFault::is_cluster},
      {"OOM", RedisFault::full},
      {"MISCONF", RedisFault::cannot_persist},
      {"NOREPLICAS", RedisFault::cannot_persist},
      {"READONLY", RedisFault::is_replica},
      {"WRONGTYPE", RedisFault::holds_no_text},
      {"LOADING", RedisFault::not_ready},
      {"BUSY", RedisFault::not_ready},
      {"TRYAGAIN", RedisFault::not_ready},
      {"MASTERDOWN", RedisFault::not_ready},
      {"ERR max number of clients", RedisFault::not_ready},
  };
  for (const auto& [beginning, fault] : k_beginnings)
    if (text.starts_with(beginning)) return fault;
  return RedisFault::refused_command;
}

}  // namespace jitsmith
