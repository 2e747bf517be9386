#include <jitsmith/cache/host_addresses.hpp>

#include <fmt/format.h>

#include <netdb.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

namespace jitsmith {
namespace {

FoundAddresses ask_resolver(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &list);
  if (error != 0) return {{}, {RedisFault::no_address, error}};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  FoundAddresses found;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    if (item->ai_addrlen > sizeof(sockaddr_storage)) continue;
    HostAddress& address = found.addresses.emplace_back();
    address.family = item->ai_family;
    address.length = item->ai_addrlen;
    std::memcpy(&address.bytes, item->ai_addr, item->ai_addrlen);
  }
  if (found.addresses.empty()) found.failure = {RedisFault::no_address, EAI_NONAME};
  return found;
}

// Threads inherit the mask: the program's signal handlers are for its own threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

FoundAddresses find_addresses(const std::string& host, std::uint16_t port,
                              std::chrono::steady_clock::time_point deadline) {
  FoundAddresses numeric = ask_resolver(host, port, AI_NUMERICHOST);
  if (!numeric.failure) return numeric;

  // What the thread works with is its own: nobody may be here any more when it is done.
  std::packaged_task<FoundAddresses()> look_up(
      [host, port] { return ask_resolver(host, port, AI_ADDRCONFIG); });
  std::future<FoundAddresses> answer = look_up.get_future();
  try {
    const AllSignalsBlocked blocked;
    std::thread(std::move(look_up)).detach();
  } catch (const std::system_error& error) {
    return {{}, {RedisFault::no_resolver, error.code().value()}};
  }
  if (answer.wait_until(deadline) != std::future_status::ready) return {{}, {RedisFault::slow_resolver, 0}};
  return answer.get();
}

}  // namespace jitsmith
