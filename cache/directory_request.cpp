#include <jitsmith/cache/directory_request.hpp>

#include <jitsmith/cache/environment.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

namespace jitsmith {
namespace {

constexpr std::string_view k_environment_remedy = "set JITSMITH_CACHE_DIR to a directory of your own";

// By number: in a container the user often has no entry, and so no name.
std::optional<std::string> home_from_passwd() {
  std::vector<char> buffer(1024);
  passwd record{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = ::getpwuid_r(::geteuid(), &record, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < (std::size_t{1} << 20)) {
    buffer.resize(buffer.size() * 2);
  }
  if (error != 0 || found == nullptr || found->pw_dir == nullptr) return std::nullopt;
  return std::string(found->pw_dir);
}

bool is_set(const std::optional<std::string>& value) {
  return value && !value->empty();
}

bool is_absolute(const std::optional<std::string>& value) {
  return value && value->starts_with('/') && value->find('\0') == std::string::npos;
}

DirectoryChoice named(const std::string& path, std::string origin, std::string remedy) {
  if (is_absolute(path)) return {std::move(origin), "/", path.substr(1), std::move(remedy), {}};
  DirectoryChoice none;
  none.reason = fmt::format("{} is \"{}\", which is not an absolute path; {}", origin, path, remedy);
  return none;
}

DirectoryChoice below_home(const std::string& home, std::string origin) {
  return {std::move(origin), home, ".cache/jitsmith", std::string(k_environment_remedy), {}};
}

}  // namespace

DirectoryRequest directory_request_from_environment() {
  DirectoryRequest request;
  if (raised_privileges()) {
    request.enabled = false;
    request.disabled_reason =
        "the disk cache is off because this program runs with raised privileges (setuid, setgid or "
        "capabilities); "
        "run it as an ordinary user to keep compiled kernels";
    return request;
  }
  if (environment("JITSMITH_CACHE") == "0") {
    request.enabled = false;
    request.disabled_reason =
        "the disk cache is turned off by JITSMITH_CACHE=0; unset JITSMITH_CACHE to keep compiled kernels";
  }
  request.environment_dir = environment("JITSMITH_CACHE_DIR");
  request.xdg_cache_home = environment("XDG_CACHE_HOME");
  request.home = environment("HOME");
  // Asked only when it decides: the user database may be a slow network service.
  if (!is_set(request.environment_dir) && !is_absolute(request.xdg_cache_home) &&
      !is_absolute(request.home)) {
    request.passwd_home = home_from_passwd();
  }
  return request;
}

DirectoryChoice choose_directory(const DirectoryRequest& request) {
  if (!request.enabled) {
    DirectoryChoice none;
    none.reason = request.disabled_reason.empty() ? "the disk cache is turned off" : request.disabled_reason;
    return none;
  }
  if (is_set(request.explicit_dir)) {
    return named(*request.explicit_dir, "the cache directory option", "pass another directory");
  }
  if (is_set(request.environment_dir)) {
    return named(*request.environment_dir, "JITSMITH_CACHE_DIR", std::string(k_environment_remedy));
  }
  if (is_absolute(request.xdg_cache_home)) {
    return {"XDG_CACHE_HOME",
            "/",
            request.xdg_cache_home->substr(1) + "/jitsmith",
            std::string(k_environment_remedy),
            {}};
  }
  if (is_absolute(request.home)) return below_home(*request.home, "HOME");
  if (is_absolute(request.passwd_home)) return below_home(*request.passwd_home, "the user database");
  DirectoryChoice none;
  none.reason =
      fmt::format("neither XDG_CACHE_HOME, HOME nor the user database names an absolute directory; {}",
                  k_environment_remedy);
  return none;
}

}  // namespace jitsmith
