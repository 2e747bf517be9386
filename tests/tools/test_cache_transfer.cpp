// jitsmith cache export and import from the outside.
#include <algorithm>
#include <filesystem>

#include <sys/resource.h>
#include <sys/stat.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "copied_cache.hpp"
#include "support/stub_server.hpp"

using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

// A bundle of filled_cache(), made once.
const std::string& bundle_file() {
  static const TempDir directory;
  static const std::string path = [] {
    REQUIRE(Tool(filled_cache())({"cache", "export", directory / "b.jsb"}).status == 0);
    return directory / "b.jsb";
  }();
  return path;
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith cache export and import");

TEST_CASE("what is exported can be imported elsewhere, and serves from where it is") {
  const CopiedCache from;
  const TempDir elsewhere;
  const Tool tool(from.path());
  const std::string file = elsewhere / "kernels.jsb";
  const Json exported = json_of(tool({"cache", "export", file, "--json"}));
  CHECK(exported["entries"] == 2);
  CHECK(exported["bytes"] == std::filesystem::file_size(file));
  const std::string bytes = text_of_file(file);
  CHECK(tool({"cache", "export", file}).status == 0);
  CHECK(text_of_file(file) == bytes);

  const Tool other(elsewhere / "c");
  CHECK(has(other({"cache", "import", file}).out, "stored 2 entries"));
  CHECK(json_of(other({"cache", "list", "--json"})).size() == 2);
  CHECK(other({"cache", "verify"}).status == 0);

  Tool bundled(elsewhere / "empty");
  bundled.set("JITSMITH_BUNDLES", file)
      .set("JITSMITH_HOST_CXX", "/nonexistent")
      .set("JITSMITH_POLICY", "cached_only");
  const ToolResult result = bundled({"cache", "why", "skinny_gemm", "--set", "m=1", "--set", "n=4", "--set",
                                     "k=16", "--arch", "host", "--json"});
  CHECK(result.status == 0);
  CHECK(json_of(result)["cached_of_another_toolchain"] == "bundle");
}

TEST_CASE("export takes what the filters leave, and writes nothing for nothing") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  const std::string file = cache.file("out.jsb");
  const auto exported = [&](const std::vector<std::string>& filter) {
    std::vector<std::string> args{"cache", "export", file};
    args.insert(args.end(), filter.begin(), filter.end());
    return tool(args);
  };
  for (const std::vector<std::string>& filter :
       std::vector<std::vector<std::string>>{{"--arch", "sm_90a,sm_100a"}, {"--template", "no/such.cu"}}) {
    const ToolResult none = exported(filter);
    CHECK(none.status == 1);
    CHECK(has(none.err, "so " + file + " is not written"));
    CHECK_FALSE(std::filesystem::exists(file));
  }
  CHECK(exported({"--op", "nonsense"}).status == 2);
  CHECK(exported({"--arch", "host,sm_90a", "--op", "skinny_gemm"}).status == 0);
  CHECK(exported({"--template", "skinny_gemm/simt.cu"}).status == 0);
}

TEST_CASE("import refuses what is no bundle") {
  const TempDir here;
  const ToolResult result = Tool(here / "c")({"cache", "import", "/nonexistent/a.jsb"});
  CHECK(result.status == 1);
  CHECK(std::ranges::count(result.err, '\n') == 1);
}

TEST_CASE("export replaces regular files only") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  const std::string fifo = cache.file("fifo"), link = cache.file("link"), file = cache.file("file");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::ofstream(file) << "kept";
  std::filesystem::create_symlink(file, link);
  std::filesystem::create_symlink("nowhere", cache.file("dangling"));
  // No device: without the check a test that runs as root would put a file in the place of the system's own.
  for (const std::string& place : {fifo, link, cache.file("dangling"), cache.path()}) {
    const ToolResult result = tool({"cache", "export", place});
    CHECK(result.status == 2);
    CHECK(has(result.err, "FILE " + place + " is "));
    CHECK(has(result.err, "only a regular file is replaced"));
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
  CHECK(std::filesystem::is_fifo(fifo));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(bytes_of(file) == "kept");
  CHECK(tool({"cache", "export", file}).status == 0);
}

TEST_CASE("export leaves out what a newer jitsmith wrote, and says so") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  make_newer(entry_files(cache.path()).front());
  const ToolResult text = tool({"cache", "export", cache.file("b.jsb")});
  CHECK(text.status == 0);
  CHECK(has(text.out, "wrote 1 entry, "));
  CHECK(has(text.out, "; left out 1 entry of a newer jitsmith\n"));
  Json json = json_of(tool({"cache", "export", cache.file("b.jsb"), "--json"}));
  CHECK(json["newer"] == 1);
  CHECK(json["damaged"] == 0);
}

TEST_CASE("import says in one sentence why an entry is not stored, and what to do") {
  const CopiedCache cache;
  const std::filesystem::path place = entry_files(cache.path()).front();
  std::string reason;
  rlim_t largest_file = RLIM_INFINITY;
  SUBCASE("a newer jitsmith's entry has its place") {
    make_newer(place);
    reason = "1 entry could not be stored: an entry of a newer jitsmith has this place in " + cache.path();
  }
  SUBCASE("its folder is a symbolic link") {
    std::filesystem::remove_all(place.parent_path());
    std::filesystem::create_symlink("/tmp", place.parent_path());
    reason = "1 entry could not be stored: what has this place in " + cache.path() + " is not trusted";
  }
  SUBCASE("the file would be too large") {
    for (const auto& entry : entry_files(cache.path())) std::filesystem::remove(entry);
    largest_file = 4096;
    reason = "2 entries could not be stored: " + cache.path() + " could not be written: File too large";
  }
  StartedTool import(Tool(cache.path()).environment(), {"cache", "import", bundle_file()}, [=] {
    const rlimit limit{largest_file, largest_file};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  CHECK(WEXITSTATUS(import.wait()) == 1);
  CHECK_MESSAGE(has(import.err(), reason), import.err());
  CHECK(has(import.err(), "; "));
  CHECK(has(import.err(), ", or set JITSMITH_CACHE_DIR to another directory\n"));
  CHECK_FALSE(has(import.err(), "hits="));
}

TEST_CASE("import tells the entries of a newer jitsmith from damaged ones") {
  const TempDir here;
  std::string bytes = bytes_of(bundle_file());
  const std::size_t first = bytes.find("\x89JSE"), second = bytes.find("\x89JSE", first + 1);
  bytes[first + 8] = 2;
  bytes[second + 100] ^= 1;
  std::ofstream(here / "b.jsb", std::ios::binary) << bytes;
  const ToolResult result = Tool(here / "c")({"cache", "import", here / "b.jsb"});
  CHECK(result.status == 1);
  CHECK(has(result.err, "left out 1 entry of " + (here / "b.jsb") + " as damaged; export it anew\n"));
  CHECK(has(result.err, "left out 1 entry of " + (here / "b.jsb") + " that a newer jitsmith wrote; "));
}

TEST_CASE("import says how much the remote tier did not take, and that is no failure") {
  const TempDir here;
  Tool tool(here / "c");
  tool.set("JITSMITH_REMOTE", "redis://127.0.0.1:" + std::to_string(free_port()));
  const ToolResult result = tool({"cache", "import", bundle_file()});
  CHECK(result.status == 0);
  CHECK(has(result.err, "warning: the remote tier took 0 of 2 entries: "));
  tool.set("JITSMITH_REMOTE_MODE", "read_only");
  CHECK_FALSE(has(tool({"cache", "import", bundle_file()}).err, "remote tier took"));
}

TEST_SUITE_END();
