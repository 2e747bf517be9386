#include <jitsmith/cache/environment.hpp>

#include <cstdlib>

#include <sys/auxv.h>
#include <unistd.h>

namespace jitsmith {

bool raised_privileges() {
  // AT_SECURE speaks of the moment of exec; the ids may have changed since.
  return ::getauxval(AT_SECURE) != 0 || ::getuid() != ::geteuid() || ::getgid() != ::getegid();
}

std::optional<std::string> environment(const char* name) {
  if (raised_privileges()) return std::nullopt;
  const char* const value = ::secure_getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace jitsmith
