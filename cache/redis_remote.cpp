#include <jitsmith/cache/redis_remote.hpp>

#include <fmt/format.h>

#include <array>
#include <thread>
#include <utility>

namespace jitsmith {
namespace {

using std::chrono::steady_clock;

// A turn takes some 0.1 ms when all is well.
constexpr std::chrono::microseconds k_turn_poll{200};

std::string key_of(const Digest& digest) {
  return "jitsmith:v1:" + digest.hex();
}

RemoteOptions without_url(RemoteOptions options) {
  options.url.clear();
  return options;
}

}  // namespace

RedisRemote::RedisRemote(const CacheContext& context, RedisUrl url, const RemoteOptions& options)
    : context_(context),
      url_(std::move(url)),
      endpoint_(url_.endpoint()),
      options_(without_url(options)),
      gate_(options.trouble_budget, options.pause) {}

std::optional<Entry> RedisRemote::get(std::string_view key_text, const Digest& digest) {
  const std::string key = key_of(digest);
  const std::array<std::string_view, 2> command{"GET", key};
  const auto reply = ask(Operation::read, InPause::skip, command, RedisReply::Kind::bytes);
  if (!reply || reply->kind == RedisReply::Kind::nil) return std::nullopt;

  Decoded decoded = decode(std::as_bytes(std::span(reply->text)));
  if (!decoded.entry) {
    if (is_damage(decoded.fault)) tell_damage(digest, describe_fault(decoded));
    return std::nullopt;
  }
  if (decoded.entry->key_text != key_text) {
    tell_damage(digest, "it belongs to another key");
    return std::nullopt;
  }
  return std::move(decoded.entry);
}

void RedisRemote::put(const Entry& entry, const Digest& digest) {
  if (options_.mode == RemoteMode::read_only || unfit_to_store(entry)) return;
  if (!gate_.admits(Operation::write, context_.clock.steady())) {  // asked again below: spares the encoding
    context_.counters.add(&CacheStats::remote_skipped);
    return;
  }
  const std::string key = key_of(digest);
  const auto value = encode(entry);
  const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
  const std::array<std::string_view, 3> command{"SET", key, bytes};
  if (ask(Operation::write, InPause::skip, command, RedisReply::Kind::status))
    context_.counters.add(&CacheStats::remote_written);
}

bool RedisRemote::ping() {
  const std::array<std::string_view, 1> command{"PING"};
  if (!ask(Operation::read, InPause::try_anyway, command, RedisReply::Kind::status)) return false;
  gate_.note_success();
  return true;
}

RemoteState RedisRemote::state() const {
  const RemoteGate::Status status = gate_.status(context_.clock.steady());
  const bool is_off = status.now == Change::off || status.now == Change::budget_spent;
  return {.configured = true,
          .usable = !is_off,
          .endpoint = endpoint_,
          .reason = status.why ? sentence(status.why, status.now) : std::string()};
}

std::optional<RedisReply> RedisRemote::ask(Operation operation, InPause in_pause, Command command,
                                           RedisReply::Kind expected) {
  auto turn = wait_for_turn(operation, in_pause);
  if (!turn.owns_lock()) {
    context_.counters.add(&CacheStats::remote_skipped);
    return std::nullopt;
  }
  const auto start = steady_clock::now();
  RedisAnswer answer = converse(command);
  RedisFailure failure = answer.failure;
  const RedisReply::Kind kind = answer.reply.kind;
  const bool is_absent = expected == RedisReply::Kind::bytes && kind == RedisReply::Kind::nil;
  if (!failure && kind != expected && !is_absent) failure.fault = RedisFault::bad_protocol;
  if (!failure) {
    if (gate_.note_answer(steady_clock::now() - start) == Change::budget_spent) {
      turn.unlock();
      context_.tell(EventLevel::warning, "remote.off",
                    sentence({RedisFault::too_slow, 0}, Change::budget_spent));
    }
    return std::move(answer.reply);
  }

  // An answer to another question: so would be what follows on this connection.
  if (failure.fault == RedisFault::bad_protocol) connection_.reset();
  // A user who may read but not write is still of use.
  if (failure.fault == RedisFault::no_permission && operation == Operation::write)
    failure.fault = RedisFault::no_write_permission;
  // Noted before the turn ends: those who wait for it must see that it is not worth it.
  const Change change = gate_.note_failure(failure, steady_clock::now() - start, context_.clock.steady());
  turn.unlock();
  tell_failure(failure, change);
  return std::nullopt;
}

// Polled, because a lock that is waited for with a deadline is neither safe in a forked child nor able to
// look up when the tier is switched off meanwhile.
std::unique_lock<ForkMutex> RedisRemote::wait_for_turn(Operation operation, InPause in_pause) {
  const auto give_up = steady_clock::now() + options_.connect_timeout + options_.operation_timeout;
  while (true) {
    std::unique_lock turn(mutex_, std::try_to_lock);
    const bool is_worth_it =
        in_pause == InPause::skip ? gate_.admits(operation, context_.clock.steady()) : !gate_.is_off();
    if (!is_worth_it) return {};
    if (turn.owns_lock()) return turn;
    if (steady_clock::now() >= give_up) return {};
    std::this_thread::sleep_for(k_turn_poll);
  }
}

RedisAnswer RedisRemote::converse(Command command) {
  if (fork_check_.is_new_process() && connection_) {
    connection_->abandon();
    static_cast<void>(connection_.release());
  }
  if (connection_ && !connection_->is_usable()) connection_.reset();
  auto deadline = steady_clock::now() + options_.operation_timeout;
  if (!connection_) {
    const auto connect_deadline = steady_clock::now() + options_.connect_timeout;
    deadline += options_.connect_timeout;
    auto opened = RedisConnection::open(url_, trust_, connect_deadline, deadline);
    if (opened.failure) return {{}, opened.failure};
    connection_ = std::move(opened.connection);
  }
  return connection_->ask(command, deadline);
}

void RedisRemote::tell_failure(RedisFailure failure, Change change) const {
  if (consequence_of(failure.fault) == Consequence::damaged_value) {
    context_.counters.add(&CacheStats::remote_corrupt);
    context_.tell(EventLevel::warning, "remote.corrupt", sentence(failure, change));
    return;
  }
  context_.counters.add(&CacheStats::remote_failed);
  const bool is_off = change == Change::off || change == Change::budget_spent;
  const bool is_final = is_off || change == Change::writes_off;
  context_.tell(is_final ? EventLevel::warning : EventLevel::info,
                is_off                         ? "remote.off"
                : change == Change::writes_off ? "remote.read_only"
                                               : "remote.failed",
                sentence(failure, change));
}

void RedisRemote::tell_damage(const Digest& digest, std::string_view what) const {
  context_.counters.add(&CacheStats::remote_corrupt);
  context_.tell(EventLevel::warning, "remote.corrupt",
                fmt::format("the value of {} on the Redis server {} is no sound entry ({}): it is made again "
                            "and written over",
                            key_of(digest), endpoint_, what));
}

std::string RedisRemote::sentence(RedisFailure failure, Change change) const {
  const auto then = [&]() -> std::string {
    switch (change) {
      case Change::none:
        break;
      case Change::pause:
        return fmt::format("; it is left alone for {} ms", options_.pause.count());
      case Change::writes_paused:
        return fmt::format("; it is only read for {} s", RemoteGate::k_write_pause.count());
      case Change::writes_off:
        return "; this process only reads it from now on";
      case Change::off:
        return "; this process does not ask it again";
      case Change::budget_spent:
        return fmt::format(
            "; with that, operations that failed or were slow took {} ms, the most that this process waits "
            "in all: it does not ask it again",
            options_.trouble_budget.count());
    }
    return "";
  };
  return fmt::format("the Redis server {} {}{}", endpoint_, describe(failure), then());
}

}  // namespace jitsmith
