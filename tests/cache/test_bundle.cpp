// Which places are taken for a bundle, and which are refused.
#include "../support/skip.hpp"
#include "bundle_bench.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>

using namespace jitsmith;
using namespace jitsmith::test;
namespace fs = std::filesystem;

namespace {

// Refused, with a sentence of what is wrong, where, and what to do.
void check_refused(BundleBench& bench, const std::string& path, std::string_view why) {
  Bundle bundle = bench.open(path);
  const BundleState& state = bundle.state();
  INFO(state.reason);
  CHECK_FALSE(state.usable);
  CHECK(state.path == path);
  CHECK(contains(state.reason, "the bundle " + path + " "));
  CHECK(contains(state.reason, why));
  CHECK(contains(state.reason, "; "));
  CHECK_FALSE(get(bundle, bundled_entry(1)));
  bundle.list([](const ListedEntry&) { FAIL("nothing to list"); });
}

// A cache directory at `path` with one entry, as a bundle's maker leaves it.
void make_directory(const fs::path& path, const Entry& entry) {
  Cache cache({.directory = at(path)});
  REQUIRE(cache.put(entry) == PutResult::stored);
}

}  // namespace

TEST_SUITE_BEGIN("Bundle");

TEST_CASE("A cache directory is a bundle") {
  BundleBench bench;
  make_directory(bench.path, bundled_entry(1));
  Bundle bundle = bench.open();
  INFO(bundle.state().reason);
  REQUIRE(bundle.state().usable);
  CHECK(get(bundle, bundled_entry(1)) == bundled_entry(1));
  CHECK_FALSE(get(bundle, bundled_entry(2)));
  int listed = 0;
  bundle.list([&](const ListedEntry& entry) { listed += entry.problem.empty() ? 1 : 100; });
  CHECK(listed == 1);
}

TEST_CASE("A bundle must be named by an absolute path") {
  BundleBench bench;
  check_refused(bench, "bundle.jsb", "not named by an absolute path");
  check_refused(bench, "./bundle.jsb", "not named by an absolute path");
  check_refused(bench, "", "not named by an absolute path");
  bench.write({bundled_entry(1)});
  check_refused(bench, bench.path + std::string("\0x", 2), "not named by an absolute path");
  CHECK(bench.faulty.count(Call::open) == 0);
  check_refused(bench, "/", "is the root of the file system");
}

TEST_CASE("A bundle that is not there says so") {
  BundleBench bench;
  check_refused(bench, bench.temp / "nothing", "does not exist");
  check_refused(bench, bench.temp / "no/parent", "does not exist");
  write_bytes(bench.temp / "file", {});
  check_refused(bench, bench.temp / "file/below", "Not a directory");
  CHECK(fs::is_directory(bench.temp.path()));
  CHECK_FALSE(fs::exists(bench.temp / "no"));
}

TEST_CASE("F32: A symbolic link, a FIFO, a socket or a device in the place of a bundle is refused at once") {
  BundleBench bench;
  bench.write({bundled_entry(1)});
  make_directory(bench.temp / "real", bundled_entry(1));
  const std::string planted = bench.temp / "planted";
  SUBCASE("link to a bundle file") {
    fs::create_symlink(bench.path, planted);
    check_refused(bench, planted, "symbolic link");
    check_refused(bench, planted + "/", "symbolic link");
  }
  SUBCASE("link to a bundle directory") {
    fs::create_directory_symlink(bench.temp / "real", planted);
    check_refused(bench, planted, "symbolic link");
    check_refused(bench, planted + "/", "symbolic link");
  }
  SUBCASE("FIFO") {
    REQUIRE(::mkfifo(planted.c_str(), 0600) == 0);
    check_refused(bench, planted, "neither a directory nor a regular file");
  }
  SUBCASE("socket") {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(planted.size() < sizeof address.sun_path);
    planted.copy(address.sun_path, planted.size());
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
    check_refused(bench, planted, "neither a directory nor a regular file");
  }
  SUBCASE("device") {
    check_refused(bench, "/dev/null", "neither a directory nor a regular file");
  }
}

TEST_CASE("F31: A bundle that others can write is refused") {
  BundleBench bench;
  bench.write({bundled_entry(1)});
  make_directory(bench.temp / "folder", bundled_entry(1));
  for (const mode_t mode : {0666, 0664, 0646}) {
    CAPTURE(mode);
    REQUIRE(::chmod(bench.path.c_str(), mode) == 0);
    check_refused(bench, bench.path, "can be written by other users");
  }
  for (const char* const name : {"folder", "folder/v1"}) {
    CAPTURE(name);
    for (const mode_t mode : {0777, 0775, 01777}) {
      REQUIRE(::chmod((bench.temp / name).c_str(), mode) == 0);
      check_refused(bench, bench.temp / "folder", "can be written by other users");
    }
    REQUIRE(::chmod((bench.temp / name).c_str(), 0755) == 0);
  }
  CHECK(bench.open(bench.temp / "folder").state().usable);
}

TEST_CASE("A directory that is no cache directory is refused, and none is made of it") {
  BundleBench bench;
  const fs::path folder = bench.temp / "folder";
  fs::create_directory(folder);
  fs::create_directory(bench.temp / "elsewhere");
  REQUIRE(::chmod(folder.c_str(), 0700) == 0);
  check_refused(bench, folder, "is a directory without v1");
  CHECK(fs::is_empty(folder));
  SUBCASE("v1 is a file") {
    write_bytes(folder / "v1", {});
  }
  SUBCASE("v1 is a symbolic link") {
    fs::create_directory_symlink(bench.temp / "elsewhere", folder / "v1");
  }
  check_refused(bench, folder, "its v1 is a symbolic link or not a directory");
}

TEST_CASE("F7: A bundle of a later version is refused by that name, and left as it is") {
  BundleBench bench;
  SUBCASE("file") {
    std::vector<std::byte> file = encode_bundle_index({});
    poke(file, 8, std::uint16_t{2});
    bench.write(file);
    check_refused(bench, bench.path, "is of a newer format version (2, ");
    CHECK(read_bytes(bench.path) == file);
  }
  SUBCASE("directory") {
    fs::create_directories(bench.path + "/v2");
    REQUIRE(::chmod(bench.path.c_str(), 0755) == 0);
    check_refused(bench, bench.path, "is a directory without v1");
    CHECK_FALSE(fs::exists(bench.path + "/v1"));
  }
}

TEST_CASE("F31: Links among a bundle's parents: our own are followed, a stranger's is refused") {
  BundleBench bench;
  fs::create_directory(bench.temp / "disk");
  fs::create_directory_symlink(bench.temp / "disk", bench.temp / "link");
  bench.write({bundled_entry(1)});
  fs::rename(bench.path, bench.temp / "disk/bundle.jsb");
  Bundle bundle = bench.open(bench.temp / "link/bundle.jsb");
  CHECK(get(bundle, bundled_entry(1)) == bundled_entry(1));
  if (!is_root()) {
    MESSAGE("in part only: a link of another user needs root");
    return;
  }
  REQUIRE(::lchown((bench.temp / "link").c_str(), k_other_user, k_other_user) == 0);
  check_refused(bench, bench.temp / "link/bundle.jsb", "symbolic link of another user");
}

TEST_CASE("F31: Another user's bundle is refused, root's is read by everybody") {
  if (!is_root()) return report_skip("a bundle of another user needs root to be made");
  BundleBench bench;
  bench.write({bundled_entry(1)});
  make_directory(bench.temp / "folder", bundled_entry(1));
  for (const fs::path& path : {fs::path(bench.path), fs::path(bench.temp / "folder")}) {
    CAPTURE(path.string());
    REQUIRE(::chown(path.c_str(), k_other_user, k_other_user) == 0);
    check_refused(bench, path.string(), "is owned by another user");
    REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  }
  for (const auto& item : fs::recursive_directory_iterator(bench.temp / "folder"))
    REQUIRE(::chmod(item.path().c_str(), item.is_directory() ? 0755 : 0644) == 0);
  for (const std::string& path : {bench.temp.path().string(), bench.temp / "folder"})
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(in_child([&] {
          if (!become(k_other_user)) return 2;
          for (const std::string& path : {bench.path, bench.temp / "folder"}) {
            Bundle bundle = bench.open(path);
            if (get(bundle, bundled_entry(1)) != bundled_entry(1)) return 1;
          }
          return 0;
        }) == 0);
  REQUIRE(::chmod(bench.path.c_str(), 0600) == 0);
  CHECK(in_child([&] {
          if (!become(k_other_user)) return 2;
          return contains(bench.open().state().reason, "cannot be read (Permission denied)") ? 0 : 1;
        }) == 0);
}

TEST_CASE("F33: A bundle that is swapped for another one while it is opened is judged by what was opened") {
  BundleBench bench;
  const Entry planted = bundled_entry(7);
  bench.write({planted});
  fs::rename(bench.path, bench.temp / "planted");
  bench.write({bundled_entry(1)});
  bench.faulty.before_next(Call::read, [&] {
    fs::remove(bench.path);
    fs::create_symlink(bench.temp / "planted", bench.path);
  });
  Bundle bundle = bench.open();
  CHECK(get(bundle, bundled_entry(1)) == bundled_entry(1));
  CHECK_FALSE(get(bundle, planted));
}

TEST_CASE("F18: Any failing call of opening a bundle leaves a reason, no descriptor and no write [fault]") {
  BundleBench bench;
  bench.write({bundled_entry(1)});
  make_directory(bench.temp / "folder", bundled_entry(1));
  for (const std::string& path : {bench.path, bench.temp / "folder"}) {
    int failures = 0;
    for (int nth = 1; nth < 60; ++nth) {
      CAPTURE(nth);
      const int before = open_descriptors();
      bench.faulty.forget();
      bench.faulty.fail(Call::any, nth, EIO);
      {
        const Bundle bundle = bench.open(path);
        CHECK(bundle.state().usable == bundle.state().reason.empty());
        failures += bundle.state().usable ? 0 : 1;
      }
      CHECK(open_descriptors() == before);
      for (const Call call : {Call::make_directory, Call::write, Call::touch, Call::change_mode, Call::lock})
        CHECK(bench.faulty.count(call) == 0);
    }
    CHECK(failures >= 6);
  }
}

TEST_SUITE_END();
