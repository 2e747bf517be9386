#include "../support/faulty_file_system.hpp"
#include "../support/skip.hpp"
#include "../support/temp_dir.hpp"
#include "samples.hpp"

#include <jitsmith/cache/directory.hpp>

#include <doctest/doctest.h>

#include <cstdlib>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

DirectoryState open_state(const DirectoryRequest& request) {
  return open_directory(real_file_system(), request).state;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void check_refused(const DirectoryState& state, std::string_view why) {
  CHECK(state.status == DirectoryStatus::off);
  INFO(state.reason);
  CHECK(contains(state.reason, why));
  CHECK(contains(state.reason, "; "));  // what is wrong; what to do
}

class Umask {
 public:
  explicit Umask(mode_t mask) : saved_(::umask(mask)) {}
  ~Umask() { ::umask(saved_); }

 private:
  mode_t saved_;
};

}  // namespace

TEST_SUITE_BEGIN("Directory");

TEST_CASE("F35: Candidates are tried in order") {
  DirectoryRequest request;
  request.explicit_dir = "/a";
  request.environment_dir = "/b";
  request.xdg_cache_home = "/c";
  request.home = "/d";
  request.passwd_home = "/e";
  CHECK(choose_directory(request).path() == "/a");
  request.explicit_dir.reset();
  CHECK(choose_directory(request).path() == "/b");
  request.environment_dir = "";
  CHECK(choose_directory(request).path() == "/c/jitsmith");
  request.xdg_cache_home = "relative";
  CHECK(choose_directory(request).path() == "/d/.cache/jitsmith");
  request.home.reset();
  CHECK(choose_directory(request).path() == "/e/.cache/jitsmith");
  request.passwd_home = "";
  const auto none = choose_directory(request);
  CHECK(none.origin.empty());
  CHECK(contains(none.reason, "set JITSMITH_CACHE_DIR"));
}

TEST_CASE("F35: A directory that was asked for by name is never replaced by another") {
  DirectoryRequest request;
  request.home = "/d";
  SUBCASE("relative option") {
    request.explicit_dir = "some/where";
  }
  SUBCASE("relative JITSMITH_CACHE_DIR") {
    request.environment_dir = "./x";
  }
  SUBCASE("hidden end") {
    request.explicit_dir = std::string("/a\0b", 4);
  }
  check_refused(open_state(request), "not an absolute path");
}

TEST_CASE("Turned off, nothing is looked at or created") {
  const TempDir temp;
  DirectoryRequest request = at(temp / "cache");
  request.enabled = false;
  CHECK(open_state(request).status == DirectoryStatus::off);
  CHECK_FALSE(open_state(request).reason.empty());
  CHECK_FALSE(fs::exists(temp / "cache"));
}

TEST_CASE("The environment is read as documented") {
  CHECK(in_child([] {
          ::setenv("JITSMITH_CACHE_DIR", "/b", 1);
          ::setenv("XDG_CACHE_HOME", "/c", 1);
          ::setenv("HOME", "/d", 1);
          ::unsetenv("JITSMITH_CACHE");
          const auto request = directory_request_from_environment();
          const bool right = request.enabled && request.environment_dir == "/b" &&
                             request.xdg_cache_home == "/c" && request.home == "/d" && !request.explicit_dir;
          ::setenv("JITSMITH_CACHE", "0", 1);
          const auto off = directory_request_from_environment();
          return right && !off.enabled && contains(off.disabled_reason, "JITSMITH_CACHE=0") ? 0 : 1;
        }) == 0);
}

TEST_CASE("F35: Without HOME the user database is asked, by number") {
  const auto path_without_home = [] {
    ::unsetenv("HOME");
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("JITSMITH_CACHE_DIR");
    return choose_directory(directory_request_from_environment());
  };
  if (!is_root()) {
    report_skip("needs root for a part");
    return;
  }
  CHECK(in_child([&] { return path_without_home().path() == "/root/.cache/jitsmith" ? 0 : 1; }) == 0);
  // A uid without an entry: off, with a reason, and no crash.
  CHECK(in_child([&] { return become(k_other_user) && !path_without_home().reason.empty() ? 0 : 1; }) == 0);
}

TEST_CASE("F35: With raised privileges the environment is not believed") {
  if (!is_root()) {
    report_skip("needs root");
    return;
  }
  CHECK(in_child([] {
          if (::setresuid(k_other_user, 0, 0) != 0) return 2;
          ::setenv("JITSMITH_CACHE_DIR", "/b", 1);
          const auto request = directory_request_from_environment();
          return !request.enabled && !request.environment_dir && !request.disabled_reason.empty() ? 0 : 1;
        }) == 0);
}

TEST_CASE("F34: Makes what is missing, private to its owner whatever the umask") {
  for (const mode_t mask : {0000, 0022, 0077, 0477}) {
    if (mask == 0477 && !is_root()) continue;  // not even the owner could read it
    CAPTURE(mask);
    const TempDir temp;
    const Umask umask(mask);
    const Directory opened = open_directory(real_file_system(), at(temp / "cache"));
    INFO(opened.state.reason);
    CHECK(opened.state.status == DirectoryStatus::usable);
    CHECK(opened.state.reason.empty());
    CHECK(opened.state.path == temp / "cache");
    CHECK(mode_of(temp / "cache") == 0700u);
    CHECK(mode_of(temp / "cache/v1") == 0700u);
    CHECK(mode_of(temp / "cache/CACHEDIR.TAG") == 0600u);
  }
}

TEST_CASE("F34: A set-group-id parent does not widen the modes") {
  const TempDir temp;
  REQUIRE(::chmod(temp.path().c_str(), 02700) == 0);
  CHECK(open_state(at(temp / "cache")).status == DirectoryStatus::usable);
  CHECK(mode_of(temp / "cache") == 0700u);
}

TEST_CASE("Carries the tag that backup programs look for") {
  const TempDir temp;
  REQUIRE(open_state(at(temp / "cache")).status == DirectoryStatus::usable);
  const auto tag = read_bytes(temp / "cache/CACHEDIR.TAG");
  const std::string_view text(reinterpret_cast<const char*>(tag.data()), tag.size());
  CHECK(text.starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
}

TEST_CASE("Missing parents are made, a missing home is not") {
  const TempDir temp;
  CHECK(open_state(at(temp / "a/b//./c/")).status == DirectoryStatus::usable);
  DirectoryRequest request;
  request.home = temp / "nobody";
  check_refused(open_state(request), "No such file");
  CHECK_FALSE(fs::exists(temp / "nobody"));
  request.home = temp / "a";
  CHECK(open_state(request).status == DirectoryStatus::usable);
  CHECK(fs::exists(temp / "a/.cache/jitsmith/v1"));
  CHECK(mode_of(temp / "a/.cache") == 0700u);
}

TEST_CASE("F31: A directory that others can write is refused") {
  const TempDir temp;
  fs::create_directory(temp / "cache");
  for (const mode_t mode : {0777, 0720, 0702, 01777, 02775}) {
    CAPTURE(mode);
    REQUIRE(::chmod((temp / "cache").c_str(), mode) == 0);
    check_refused(open_state(at(temp / "cache")), "can be written by other users");
    CHECK(files_below(temp / "cache").empty());
  }
  REQUIRE(::chmod((temp / "cache").c_str(), 0755) == 0);
  CHECK(open_state(at(temp / "cache")).status == DirectoryStatus::usable);
  REQUIRE(::chmod((temp / "cache/v1").c_str(), 0777) == 0);
  check_refused(open_state(at(temp / "cache")), "v1 can be written by other users");
}

TEST_CASE("F31: What is no directory is refused") {
  const TempDir temp;
  fs::create_directory(temp / "real");
  SUBCASE("file") {
    write_bytes(temp / "cache", {});
  }
  SUBCASE("symbolic link to a directory") {
    fs::create_directory_symlink(temp / "real", temp / "cache");
  }
  SUBCASE("dangling symbolic link") {
    fs::create_symlink(temp / "nothing", temp / "cache");
  }
  SUBCASE("FIFO") {
    REQUIRE(::mkfifo((temp / "cache").c_str(), 0600) == 0);
  }
  check_refused(open_state(at(temp / "cache")), "symbolic link or not a directory");
  CHECK(fs::is_empty(temp / "real"));
}

TEST_CASE("F31: A symbolic link in the place of v1 is refused") {
  const TempDir temp;
  fs::create_directories(temp / "cache");
  fs::create_directories(temp / "elsewhere");
  REQUIRE(::chmod((temp / "cache").c_str(), 0700) == 0);
  fs::create_directory_symlink(temp / "elsewhere", temp / "cache/v1");
  check_refused(open_state(at(temp / "cache")), "symbolic link");
}

TEST_CASE("F31: Links among the parents: our own are followed, a stranger's is refused") {
  const TempDir temp;
  fs::create_directory(temp / "disk");
  fs::create_directory_symlink(temp / "disk", temp / "link");
  CHECK(open_state(at(temp / "link/cache")).status == DirectoryStatus::usable);
  CHECK(fs::exists(temp / "disk/cache/v1"));
  if (!is_root()) {
    report_skip("needs root for a part");
    return;
  }
  REQUIRE(::lchown((temp / "link").c_str(), k_other_user, k_other_user) == 0);
  check_refused(open_state(at(temp / "link/cache")), "symbolic link of another user");
}

TEST_CASE("F31: Another user's directory is refused, root's is only read") {
  if (!is_root()) {
    report_skip("needs root");
    return;
  }
  const TempDir temp;
  REQUIRE(::chmod(temp.path().c_str(), 0755) == 0);
  REQUIRE(open_state(at(temp / "cache")).status == DirectoryStatus::usable);
  REQUIRE(::chown((temp / "cache").c_str(), k_other_user, k_other_user) == 0);
  check_refused(open_state(at(temp / "cache")), "owned by another user");

  REQUIRE(::chown((temp / "cache").c_str(), 0, 0) == 0);
  for (const char* const name : {"cache", "cache/v1"}) REQUIRE(::chmod((temp / name).c_str(), 0755) == 0);
  CHECK(in_child([&] {
          if (!become(k_other_user)) return 2;
          const DirectoryState state = open_state(at(temp / "cache"));
          return state.status == DirectoryStatus::read_only && contains(state.reason, "Permission denied")
                     ? 0
                     : 1;
        }) == 0);
  // Nothing below it yet, and no right to make it.
  fs::remove(temp / "cache/v1");
  CHECK(in_child([&] {
          if (!become(k_other_user)) return 2;
          return open_state(at(temp / "cache")).status == DirectoryStatus::off ? 0 : 1;
        }) == 0);
}

TEST_CASE("Parents need be searchable only, not readable") {
  if (!is_root()) {
    report_skip("needs root");
    return;
  }
  const TempDir temp;
  REQUIRE(::chmod(temp.path().c_str(), 0711) == 0);
  fs::create_directory(temp / "own");
  REQUIRE(::chown((temp / "own").c_str(), k_other_user, k_other_user) == 0);
  CHECK(in_child([&] {
          if (!become(k_other_user)) return 2;
          return open_state(at(temp / "own/cache")).status == DirectoryStatus::usable ? 0 : 1;
        }) == 0);
}

TEST_CASE("Any failing call leaves a reason, no descriptor and no exception [fault]") {
  const TempDir temp;
  const int before = open_descriptors();
  for (int nth = 1; nth < 60; ++nth) {
    CAPTURE(nth);
    fs::remove_all(temp / "x");
    FaultyFileSystem faulty;
    faulty.fail(Call::any, nth, EIO);
    {
      const Directory opened = open_directory(faulty, at(temp / "x/cache"));
      CHECK((opened.state.status == DirectoryStatus::usable) == opened.state.reason.empty());
      CHECK((opened.state.status == DirectoryStatus::off) == !opened.entries.is_open());
    }
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("F14: A read-only file system is only read, and said to be [fault]") {
  const TempDir temp;
  REQUIRE(open_state(at(temp / "cache")).status == DirectoryStatus::usable);
  FaultyFileSystem faulty;
  faulty.fail(Call::check_writable, 1, EROFS);
  faulty.fail(Call::make_directory, 1, EROFS, 100);
  const Directory opened = open_directory(faulty, at(temp / "cache"));
  CHECK(opened.state.status == DirectoryStatus::read_only);
  CHECK(contains(opened.state.reason, "Read-only file system"));
  CHECK(contains(opened.state.reason, temp / "cache"));
  CHECK(opened.entries.is_open());
}

TEST_SUITE_END();
