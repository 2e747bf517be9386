#include <jitsmith/cache/redis_connection.hpp>

#include <jitsmith/cache/entry.hpp>
#include <jitsmith/cache/sigpipe_block.hpp>

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <new>
#include <vector>

namespace jitsmith {

// The parser calls these for each value of a reply. A null result makes it give up, before it has taken
// memory for the elements of an aggregate. They are called from C, so nothing may be thrown.
struct ReplyBuilder {
  static void* fill(const redisReadTask* task, RedisReply::Kind kind, std::string_view text) noexcept {
    auto* const connection = static_cast<RedisConnection*>(task->privdata);
    try {
      connection->reply_ = {kind, std::string(text)};
      return &connection->reply_;
    } catch (const std::bad_alloc&) {
      connection->out_of_memory_ = true;
      return nullptr;
    }
  }

  static void* create_string(const redisReadTask* task, char* text, std::size_t size) noexcept {
    switch (task->type) {
      case REDIS_REPLY_STRING:
        return fill(task, RedisReply::Kind::bytes, {text, size});
      case REDIS_REPLY_STATUS:
        return fill(task, RedisReply::Kind::status, {text, size});
      case REDIS_REPLY_ERROR:
        return fill(task, RedisReply::Kind::error, {text, size});
      default:
        return nullptr;
    }
  }

  static void* create_nil(const redisReadTask* task) noexcept {
    return fill(task, RedisReply::Kind::nil, {});
  }

  // hiredis 1.0 has more kinds than 0.14, and another type for the number of elements.
  static redisReplyObjectFunctions functions() {
    redisReplyObjectFunctions functions{};
    functions.createString = &create_string;
    functions.createArray = [](const redisReadTask*, auto) -> void* { return nullptr; };
    functions.createInteger = [](const redisReadTask*, long long) -> void* { return nullptr; };
    functions.createNil = &create_nil;
    functions.freeObject = [](void*) {};  // the connection owns it
    return functions;
  }
};

namespace {

constexpr std::size_t k_line_max_bytes = std::size_t{64} << 10;      // of an error text
constexpr std::size_t k_reply_max_bytes = k_entry_max_bytes + 1024;  // room for "$67108864\r\n" and the like

redisReplyObjectFunctions g_reply_functions =
    ReplyBuilder::functions();  // never changed; hiredis has no const

// Whether a bulk string is announced that is too large to be waited for.
bool announces_too_much(std::string_view received) {
  if (!received.starts_with('$')) return false;
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(received.data() + 1, received.data() + received.size(), size);
  return error == std::errc::result_out_of_range || (error == std::errc() && size > k_entry_max_bytes);
}

void append_command(redisContext& context, std::span<const std::string_view> command) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view part : command) {
    texts.push_back(part.data());
    sizes.push_back(part.size());
  }
  const auto count = static_cast<int>(command.size());
  if (redisAppendCommandArgv(&context, count, texts.data(), sizes.data()) != REDIS_OK) throw std::bad_alloc();
}

}  // namespace

void RedisConnection::Free::operator()(redisContext* context) const noexcept {
  redisFreeKeepFd(context);
}

RedisConnection::~RedisConnection() = default;

RedisConnection::Opened RedisConnection::open(const RedisUrl& url, TlsTrust& trust, Deadline connect_deadline,
                                              Deadline deadline) {
  TcpConnected tcp = connect_tcp(url.host, url.port, connect_deadline);
  if (tcp.failure) return {nullptr, tcp.failure};
  const SigpipeBlock no_sigpipe;
  std::unique_ptr<RedisConnection> connection(new RedisConnection);
  const RedisFailure failure = connection->start(std::move(tcp.socket), url, trust, deadline);
  if (failure) return {nullptr, failure};
  return {std::move(connection), {}};
}

RedisFailure RedisConnection::start(Descriptor socket, const RedisUrl& url, TlsTrust& trust,
                                    Deadline deadline) {
  socket_ = std::move(socket);
  context_.reset(redisConnectFd(socket_.get()));
  if (!context_ || context_->err != 0) throw std::bad_alloc();
  context_->flags &= ~REDIS_BLOCK;
  context_->reader->fn = &g_reply_functions;
  context_->reader->privdata = this;
  if (url.tls) {
    if (const auto failure = session_.begin(trust, *context_, url.host, deadline)) return failure;
  }
  return log_in(url, deadline);
}

RedisFailure RedisConnection::log_in(const RedisUrl& url, Deadline deadline) {
  const std::string database = fmt::format("{}", url.database);
  const bool authenticates = url.has_credentials();
  const bool selects = url.database != 0;
  // A server before version 6 knows no user names, so AUTH is given one only where there is one.
  if (authenticates && url.user.empty())
    append_command(*context_, std::vector<std::string_view>{"AUTH", url.password});
  else if (authenticates)
    append_command(*context_, std::vector<std::string_view>{"AUTH", url.user, url.password});
  if (selects) append_command(*context_, std::vector<std::string_view>{"SELECT", database});
  if (const auto failure = send(deadline)) return failure;

  // A server that refuses these without a reason that we know will refuse them again: say what it was about.
  const auto read_reply = [&](RedisFault refusal) -> RedisFailure {
    if (const auto failure = receive(deadline)) return failure;
    if (reply_.kind == RedisReply::Kind::status) return {};
    if (reply_.kind != RedisReply::Kind::error) return {RedisFault::bad_protocol, 0};
    const RedisFault fault = fault_of_error_reply(reply_.text);
    return {fault == RedisFault::refused_command ? refusal : fault, 0};
  };
  if (authenticates)
    if (const auto failure = read_reply(RedisFault::auth_refused)) return failure;
  if (selects)
    if (const auto failure = read_reply(RedisFault::bad_database)) return failure;
  return {};
}

RedisAnswer RedisConnection::ask(std::span<const std::string_view> command, Deadline deadline) {
  const SigpipeBlock no_sigpipe;
  is_broken_ = true;  // unless it comes to a reply
  append_command(*context_, command);
  RedisFailure failure = send(deadline);
  if (!failure) failure = receive(deadline);
  if (failure) return {{}, failure};
  is_broken_ = false;
  if (reply_.kind == RedisReply::Kind::error) return {{}, {fault_of_error_reply(reply_.text), 0}};
  return {std::move(reply_), {}};
}

RedisFailure RedisConnection::send(Deadline deadline) {
  int is_done = 0;
  while (true) {
    if (redisBufferWrite(context_.get(), &is_done) != REDIS_OK) return failure_of_context();
    if (is_done != 0) return {};
    if (!wait_until_ready(socket_.get(), session_.wanted_events(POLLOUT), deadline))
      return {RedisFault::timed_out, 0};
  }
}

RedisFailure RedisConnection::receive(Deadline deadline) {
  redisReader& reader = *context_->reader;
  // The first line says what comes: it is judged before the parser moves on, and takes memory for it.
  bool has_first_line = false;
  while (true) {
    const std::string_view received = reader.len > reader.pos
                                          ? std::string_view(reader.buf + reader.pos, reader.len - reader.pos)
                                          : std::string_view();
    if (!has_first_line) {
      has_first_line = received.find('\n') != std::string_view::npos;
      if (!has_first_line && received.size() > k_line_max_bytes) return {RedisFault::bad_protocol, 0};
      if (has_first_line && announces_too_much(received)) return {RedisFault::too_large, 0};
    }
    if (received.size() > k_reply_max_bytes) return {RedisFault::too_large, 0};
    if (has_first_line) {
      void* reply = nullptr;
      if (redisReaderGetReply(&reader, &reply) != REDIS_OK) {
        if (out_of_memory_) throw std::bad_alloc();
        return {RedisFault::bad_protocol, 0};
      }
      if (reply == &reply_) return {};
      if (reply != nullptr) return {RedisFault::bad_protocol, 0};  // a kind without a function of ours
    }

    const std::size_t before = reader.len;
    if (redisBufferRead(context_.get()) != REDIS_OK) return failure_of_context();
    // After some bytes there may be more at once: TLS may hold what the socket no longer has.
    const bool in_time = reader.len == before
                             ? wait_until_ready(socket_.get(), session_.wanted_events(POLLIN), deadline)
                             : std::chrono::steady_clock::now() < deadline;
    if (!in_time) return {RedisFault::timed_out, 0};
  }
}

RedisFailure RedisConnection::failure_of_context() const {
  const int error = errno;
  switch (context_->err) {
    case REDIS_ERR_EOF:
      return {RedisFault::closed, 0};
    case REDIS_ERR_IO:
      // OpenSSL's reasons are not in errno.
      if (error == 0 || session_.is_active()) return {RedisFault::closed, 0};
      return {RedisFault::io_error, error};
    case REDIS_ERR_OOM:
      throw std::bad_alloc();
    default:
      return {RedisFault::bad_protocol, 0};
  }
}

bool RedisConnection::is_usable() const {
  if (is_broken_) return false;
  pollfd socket{socket_.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&socket, 1, 0) == 0 && context_->reader->len == context_->reader->pos;
}

void RedisConnection::abandon() {
  static_cast<void>(context_.release());
  session_.abandon();
  socket_.close();
}

}  // namespace jitsmith
