// jitsmith doctor from the outside: every state of the cache and its tiers, and no secret.
#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include "tool_process.hpp"

using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

// Starts nothing slow: no NVRTC to load.
Tool quick_tool(const std::string& cache) {
  Tool tool(cache);
  tool.set("JITSMITH_NVRTC", "/nonexistent/libnvrtc.so").set("JITSMITH_DRIVER", "/nonexistent/libcuda.so");
  return tool;
}

Json report(const Tool& tool) {
  const ToolResult result = tool({"doctor", "--json"});
  INFO(result.err);
  REQUIRE_FALSE(result.out.empty());
  return Json::parse(result.out);
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith doctor");

TEST_CASE("doctor says what is missing, and fails only when nothing can run") {
  const TempDir here;
  Tool tool = quick_tool(here / "c");
  const Json json = report(tool);
  CHECK(json["gpu"]["found"] == false);
  CHECK(json["nvrtc"]["found"] == false);
  CHECK(json["host_compiler"]["found"] == true);
  CHECK(json["cache"]["state"] == "usable");
  CHECK(json["environment"]["JITSMITH_NVRTC"] == "/nonexistent/libnvrtc.so");
  const ToolResult text = tool({"doctor"});
  CHECK(text.status == 0);
  CHECK(has(text.out, "JITSMITH_NVRTC names /nonexistent/libnvrtc.so, which does not exist"));
  CHECK(has(text.out, "not found: no GPU driver"));

  tool.set("JITSMITH_HOST_CXX", "/nonexistent/c++");
  const ToolResult nothing = tool({"doctor"});
  CHECK(nothing.status == 1);
  CHECK(has(nothing.err, "neither NVRTC nor a host compiler"));
  // A production image is complete without either.
  CHECK(tool.set("JITSMITH_POLICY", "cached_only")({"doctor"}).status == 0);
}

TEST_CASE("a usable cache is told with its limits, its room and its policy") {
  const TempDir here;
  const Json cache = report(quick_tool(here / "c").set("JITSMITH_CACHE_MAX_ENTRIES", "7"))["cache"];
  CHECK(cache["path"] == here / "c");
  CHECK_FALSE(cache.contains("reason"));
  CHECK(cache["free_bytes"].get<std::uint64_t>() > 0);
  CHECK(cache["limits"] == Json{{"bytes", 1u << 30}, {"entries", 7}});
  const ToolResult text = quick_tool(here / "c")({"doctor"});
  CHECK(has(text.out, "limits          1.0 GiB size, 65536 entries"));
  CHECK(has(text.out, "policy          compile"));
}

TEST_CASE("the locks of a usable cache work") {
  const TempDir here;
  CHECK(report(quick_tool(here / "c"))["cache"]["locks"] == "work");
  CHECK(has(report(quick_tool("/dev/null/c"))["cache"]["locks"], "no directory to lock in"));
}

TEST_CASE("a cache that is off says why: by choice, cold, or refused") {
  const TempDir here;
  const auto state_of = [&](Tool tool, const char* reason) {
    const Json cache = report(tool)["cache"];
    CHECK(cache["state"] == "off");
    CHECK_MESSAGE(has(cache["reason"], reason), cache["reason"]);
    CHECK(
        has(tool({"doctor"}).out, std::string("cache           off: ") + cache["reason"].get<std::string>()));
  };
  state_of(quick_tool(here / "c").set("JITSMITH_CACHE", "0"), "turned off by JITSMITH_CACHE=0");
  state_of(quick_tool(here / "c").set("JITSMITH_COLD", "1"), "cold mode");
  state_of(quick_tool("relative"), "not an absolute path");
  state_of(quick_tool("/dev/null/c"), "/dev/null/c");

  std::filesystem::create_directory(here / "open");
  REQUIRE(::chmod((here / "open").c_str(), 0777) == 0);
  state_of(quick_tool(here / "open"), "write");
  std::filesystem::create_directory(here / "real");
  std::filesystem::permissions(here / "real", std::filesystem::perms::owner_all);
  std::filesystem::create_directory_symlink(here / "real", here / "link");
  state_of(quick_tool(here / "link"), "link");
}

TEST_CASE("cold mode is told by itself too") {
  const TempDir here;
  CHECK(report(quick_tool(here / "c"))["cold"] == false);
  CHECK(report(quick_tool(here / "c").set("JITSMITH_COLD", "1"))["cold"] == true);
  CHECK(has(quick_tool(here / "c").set("JITSMITH_COLD", "1")({"doctor"}).out, "cold mode       no tier"));
}

TEST_CASE("each bundle is told with its state") {
  const TempDir here;
  std::ofstream(here / "no_bundle.jsb") << "nonsense";
  const Json bundles = report(
      quick_tool(here / "c")
          .set("JITSMITH_BUNDLES", "/nonexistent/a.jsb:" + here / "no_bundle.jsb"))["cache"]["bundles"];
  REQUIRE(bundles.size() == 2);
  for (const Json& bundle : bundles) {
    CHECK(bundle["state"] == "refused");
    CHECK_FALSE(bundle["reason"].get<std::string>().empty());
  }
}

TEST_CASE("a remote tier that does not answer is told, with its endpoint and its reason") {
  const TempDir here;
  const Tool tool = quick_tool(here / "c").set("JITSMITH_REMOTE", "redis://127.0.0.1:1/0");
  const Json remote = report(tool)["cache"]["remote"];
  CHECK(remote["state"] != "answers");
  CHECK(has(remote.value("endpoint", ""), "127.0.0.1:1"));
  CHECK_FALSE(remote.value("reason", "").empty());
}

TEST_CASE("a remote tier whose URL is no good is told by its variable and the rule") {
  const TempDir here;
  const Tool tool = quick_tool(here / "c").set("JITSMITH_REMOTE", "redis://127.0.0.1:port/0");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"doctor"}, {"cache", "stat"}}) {
    const std::string out = tool(args).out;
    CHECK_MESSAGE(
        has(out,
            " JITSMITH_REMOTE (hidden, for it may hold a password), off: the port of the remote tier's "
            "URL is no number from 1 to 65535; the form is redis[s]://"),
        out);
  }
}

TEST_CASE("no user and no password is ever printed") {
  const TempDir here;
  for (const char* url :
       {"redis://alice:s3cret@127.0.0.1:1/0", "rediss://:s3cret@127.0.0.1:1", "alice:s3cret@host",
        "redis://alice:s3c@ret/s3cret@127.0.0.1:1", "redis://:s3cret", "redis://alice:s3cret?x@h",
        "redis://127.0.0.1:1#s3cret", "redis://127.0.0.1:1/0?password=s3cret"}) {
    CAPTURE(url);
    for (const char* name : {"JITSMITH_REMOTE", "JITSMITH_REMOTES"}) {
      if (std::string(name) == "JITSMITH_REMOTES" && !has(url, "://")) continue;
      const Tool tool = quick_tool(here / "c").set(name, url);
      for (const std::vector<std::string>& args :
           std::vector<std::vector<std::string>>{{"--verbose", "doctor"},
                                                 {"doctor", "--json"},
                                                 {"--verbose", "cache", "stat"},
                                                 {"cache", "stat", "--json"}}) {
        const ToolResult result = tool(args);
        CHECK_FALSE(has(result.out + result.err, "s3c"));
        CHECK_FALSE(has(result.out + result.err, "alice"));
      }
    }
  }
  const Json environment = report(
      quick_tool(here / "c").set("JITSMITH_REMOTE", "redis://alice:s3cret@cache:6379/0"))["environment"];
  CHECK(environment["JITSMITH_REMOTE"] == "redis://cache:6379/0 (user or password hidden)");
}

TEST_CASE("the recording file is told, and whether it can be written") {
  const TempDir here;
  CHECK(report(quick_tool(here / "c"))["record"]["path"] == "");
  const Json fine = report(quick_tool(here / "c").set("JITSMITH_RECORD", here / "record.json"))["record"];
  CHECK(fine["path"] == here / "record.json");
  CHECK(fine["writable"] == true);
  CHECK_FALSE(std::filesystem::exists(here / "record.json"));  // it only looks
  const Json lost =
      report(quick_tool(here / "c").set("JITSMITH_RECORD", "/nonexistent/record.json"))["record"];
  CHECK(lost["writable"] == false);
  CHECK(has(lost["reason"], "/nonexistent cannot be written"));
}

TEST_SUITE_END();
