#include <jitsmith/jit/temp_directory.hpp>

#include <jitsmith/jit/error.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/message_of.hpp"
#include "support/mount_namespace.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

const std::string k_hex = "0123456789abcdef0123456789abcdef";

void age(const fs::path& path, std::chrono::minutes by) {
  fs::last_write_time(path, fs::last_write_time(path) - by);
}

// As one that a process was killed with, an hour and a bit ago.
std::string leave(const TempDir& parent, const std::string& name) {
  const std::string path = parent / name;
  fs::create_directories(path + "/source/folder");
  std::ofstream(path + "/source/folder/k.cu") << "text";
  age(path, std::chrono::minutes(61));
  return path;
}

}  // namespace

TEST_SUITE_BEGIN("TempDirectory");

TEST_CASE("It is private, and gone with all that it holds") {
  const TempDir parent;
  {
    const TempDirectory directory(parent.path().string());
    directory.write("a/b/file", "text");
    CHECK(fs::file_size(directory.path() + "/a/b/file") == 4);
    CHECK(fs::status(directory.path()).permissions() == fs::perms::owner_all);
  }
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("What a killed process left is removed by the next, once it is old [process]") {
  const TempDir parent;
  const pid_t child = start([&] {
    const TempDirectory directory(parent.path().string());
    directory.write("source/k.cu", "text");
    ::kill(::getpid(), SIGKILL);
    return true;
  });
  CHECK(WIFSIGNALED(status_of(child)));
  REQUIRE_FALSE(fs::is_empty(parent.path()));
  const fs::path left = fs::directory_iterator(parent.path())->path();
  TempDirectory(parent.path().string());
  CHECK(fs::exists(left));  // perhaps its maker has not come to lock it yet
  age(left, std::chrono::minutes(61));
  TempDirectory(parent.path().string());
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("One that is old and in use stays, whoever looks [process]") {
  const TempDir parent;
  const TempDirectory directory(parent.path().string());
  directory.write("file", "text");
  age(directory.path(), std::chrono::minutes(600));
  TempDirectory(parent.path().string());
  CHECK(status_of(start([&] {
          TempDirectory(parent.path().string());
          return true;
        })) == 0);
  CHECK(fs::exists(directory.path() + "/file"));
}

TEST_CASE("What is not exactly one of ours stays, however old") {
  const TempDir parent, elsewhere;
  const std::string kept = leave(elsewhere, "kept");
  for (const std::string& name :
       std::vector<std::string>{"jitsmith", "jitsmith-backup", "jitsmith.t-", "jitsmith.t-0123",
                                "jitsmith.t-" + k_hex + "0", "other.t-" + k_hex})
    leave(parent, name);
  fs::create_directory_symlink(kept, parent / "jitsmith.t-" + k_hex);
  const std::string gone = leave(parent, "jitsmith.t-f" + k_hex.substr(1));
  TempDirectory(parent.path().string());
  CHECK_FALSE(fs::exists(gone));
  CHECK(std::distance(fs::directory_iterator(parent.path()), {}) == 7);
  CHECK(fs::exists(kept + "/source/folder/k.cu"));
}

TEST_CASE("What another user left stays [root]") {
  const TempDir parent;
  const std::string theirs = leave(parent, "jitsmith.t-" + k_hex);
  if (::chown(theirs.c_str(), 65534, 65534) != 0) return report_skip("not root");
  TempDirectory(parent.path().string());
  CHECK(fs::exists(theirs));
}

TEST_CASE("Many leftovers are removed a few at a time") {
  const TempDir parent;
  for (int i = 0; i < 20; ++i) {
    std::string name = "jitsmith.t-" + k_hex;
    name.replace(name.size() - 2, 2, std::to_string(10 + i));
    leave(parent, name);
  }
  const auto left = [&] { return std::distance(fs::directory_iterator(parent.path()), {}); };
  TempDirectory(parent.path().string());
  CHECK(left() == 4);
  TempDirectory(parent.path().string());
  CHECK(left() == 0);
}

TEST_CASE("A full disk is told by the folder that TMPDIR names, also of one inside another [fault]") {
  const TempDir parent;
  const NamespaceRun run = in_mount_namespace(
      [&]() -> std::string {
        if (::mount("none", parent.path().c_str(), "tmpfs", 0, "size=64k") == 0) return {};
        return std::string("a tmpfs cannot be mounted: ") + std::strerror(errno);
      },
      [&]() -> std::string {
        const TempDirectory outer(parent.path().string());
        const TempDirectory inner(outer.path());
        try {
          inner.write("source/k.cu", std::string(100'000, 'x'));
        } catch (const TransientCompileError& error) {
          return error.what();
        }
        return "it was written";
      });
  if (!run.skipped.empty()) return report_skip(run.skipped);
  CHECK(run.problem == "the temporary files of a compile can't be written in " + parent.path().string() +
                           ": No space left on device; make room there or set TMPDIR to another folder");
}

TEST_SUITE_END();
