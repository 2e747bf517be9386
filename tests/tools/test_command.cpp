// The command from the outside: what people type, what they get, on the host target.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tool_process.hpp"

using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

// No compile: these cases only look.
Tool plain_tool() {
  return Tool(JITSMITH_TEST_BINARY_DIR "/tool-cache");
}

const std::vector<std::string> k_explain{"explain", "skinny_gemm", "--set", "n=2112",
                                         "--set",   "k=7168",      "--set"};

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith command");

TEST_CASE("help and version succeed, a wrong command line does not") {
  const Tool tool = plain_tool();
  CHECK(has(tool({"--help"}).out, "explain"));
  CHECK(has(tool({"warm", "--help"}).out, "--dry-run"));
  CHECK(has(tool({"warm", "--help"}).out, "exit status 1 if anything is"));
  CHECK(!has(tool({"--help"}).out, "warm-worker"));  // for the command itself
  CHECK(tool({"--version"}).status == 0);
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"list", "--nonsense"},
                                             {"show"},
                                             {"cache"},
                                             {"run", "skinny_gemm"},
                                             {"warm", "--jobs", "0"}}) {
    const ToolResult result = tool(args);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("jitsmith: "));
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
  CHECK(has(tool({"nonsense"}).err, "nonsense"));
  CHECK(has(tool({"cache", "nonsense"}).err, "nonsense"));
  CHECK(has(tool({"cache"}).err, "cache is given no sub-command"));
}

TEST_CASE("an empty value is none, whichever way it is given") {
  const TempDir here;
  const Tool tool(here / "c");
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"cache", "export", ""},
                                             {"cache", "import", ""},
                                             {"cache", "show", ""},
                                             {"cache", "trim", "--max-bytes", ""},
                                             {"cache", "trim", "--max-bytes="},
                                             {"cache", "trim", "--max-bytes=", "1M"},
                                             {"cache", "trim", "--max-entries", ""},
                                             {"warm", "--all", "--arch", ""},
                                             {"warm", "--all", "--arch", "host", "--into", ""},
                                             {"warm", "--recording", ""},
                                             {"warm", "--from", "", "--arch", "host"},
                                             {"warm", "--all", "--jobs", ""},
                                             {"explain", ""},
                                             {"run", "skinny_gemm", "--out", ""}}) {
    const ToolResult result = tool(args);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(has(result.err, " is empty; give it a value"), result.err);
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
}

TEST_CASE("from a working directory that is gone, a file needs its whole path") {
  const TempDir here;
  for (const auto& [args, name] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"cache", "import", "b.jsb"}, "FILE b.jsb"},
           {{"cache", "export", "b.jsb"}, "FILE b.jsb"},
           {{"warm", "--all", "--arch", "host", "--into", "b.jsb"}, "--into b.jsb"},
           {{"warm", "--all", "--arch", "host"}, "TMPDIR temp"}}) {
    std::filesystem::create_directory(here / "gone");
    StartedTool tool(Tool(here / "c").set("TMPDIR", "temp").environment(), args, [&] {
      if (::chdir((here / "gone").c_str()) != 0 || ::rmdir((here / "gone").c_str()) != 0) ::_exit(126);
    });
    CHECK(WEXITSTATUS(tool.wait()) == 2);
    CHECK(tool.err() == "jitsmith: " + name +
                            " is relative to the working directory, which can't be found: No such file or "
                            "directory; give the whole path, from / on\n");
  }
}

TEST_CASE("list and show derive from the schemas") {
  const Tool tool = plain_tool();
  CHECK(has(tool({"list"}).out, "skinny_gemm"));
  CHECK(Json::parse(tool({"list", "--json"}).out)[0]["name"] == "skinny_gemm");
  const ToolResult text = tool({"show", "skinny_gemm"});
  for (const char* part : {"a multiple of 32 from 32 to 1024, default 128",
                           "Run-time values, one binary serves them all: m, n, k", "bias", "optional",
                           "aligned=true needs k to be a multiple of 8"})
    CHECK(has(text.out, part));
  const Json json = Json::parse(tool({"show", "skinny_gemm", "--json"}).out);
  CHECK(json["request"]["parameters"][0]["name"] == "m");
  CHECK(json["variants"][0]["baked_in"]["parameters"][0]["default"] == 128);
  const ToolResult unknown = tool({"show", "nonsense"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err == "jitsmith: there is no op 'nonsense'; give one of skinny_gemm\n");
}

TEST_CASE("explain needs no GPU and says why") {
  const Tool tool = plain_tool();
  const ToolResult text = tool(with(k_explain, {"m=4", "--device", "h200"}));
  CHECK(text.status == 0);
  CHECK(has(text.out, "h200 (sm_90a, 132 multiprocessors)"));
  CHECK(has(text.out, "costs no less by the model"));
  const Json json = Json::parse(tool(with(k_explain, {"m=4", "--arch", "sm_100a", "--json"})).out);
  CHECK(json["device"]["name"] == "b200");
  CHECK(json["request"]["out"] == "bf16");
  CHECK(json["winner"]["params"]["tile_m"].get<int>() >= 4);  // all rows in one tile
  CHECK(has(tool(with(k_explain, {"m=4", "--target", "host"})).out, "host"));

  const ToolResult declined = tool(with(k_explain, {"m=33"}));
  CHECK(declined.status == 0);
  CHECK(has(declined.out, "declined  skinny_gemm serves m up to 32, and m is 33"));
  CHECK(Json::parse(tool(with(k_explain, {"m=33", "--json"})).out)["verdict"] == "decline");
}

TEST_CASE("explain refuses what has no meaning, in one sentence") {
  const Tool tool = plain_tool();
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"m=-1"}, "m=-1 is not allowed"},
      {{"m=4", "--set", "m=5"}, "--set m is given twice"},
      {{"m=4", "--set", "q=5"}, "skinny_gemm has no parameter 'q'"},
      {{"m=4", "--set", "out=f64"}, "out=f64 is not allowed"},
      {{"m=4", "--set", "k"}, "--set 'k' is not of the form name=value"},
      {{"m=4", "--device", "gtx"}, "device 'gtx' is unknown"},
      {{"m=4", "--arch", "7"}, "'7' is no architecture"},
      {{"m=4", "--target", "tpu"}, "--target 'tpu' is unknown"},
      {{"m=4", "--arch", "sm_80", "--device", "a100"}, "give one of them"},
      {{"m=4", "--set", "variant=tensor"}, "skinny_gemm has no variant 'tensor'"},
  };
  for (const auto& [args, sentence] : cases) {
    const ToolResult result = tool(with(k_explain, args));
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(has(result.err, sentence), result.err);
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
}

TEST_CASE("a setting without meaning in the environment is refused") {
  const ToolResult result = plain_tool().set("JITSMITH_TARGET", "tpu")({"list"});
  CHECK(result.status == 2);
  CHECK(has(result.err, "JITSMITH_TARGET=tpu"));
}

TEST_CASE("an unusable cache is reported by name, and nothing is warmed into it") {
  const Tool tool("/dev/null/cache");
  const ToolResult stat = tool({"cache", "stat"});
  CHECK(stat.status == 0);
  CHECK(stat.out.starts_with("state     off: "));
  CHECK(Json::parse(tool({"cache", "stat", "--json"}).out)["state"] == "off");
  CHECK(tool({"cache", "list"}).status == 1);
  const ToolResult warm = tool({"warm", "--all", "--arch", "host"});
  CHECK(warm.status == 1);
  CHECK(has(warm.err, "jitsmith: there is no cache to fill: "));
  CHECK(has(warm.err, "/dev/null/cache"));
}

TEST_CASE("standard output that takes nothing is a failure and no crash") {
  const Tool tool = plain_tool();
  for (const char* redirection : {">&-", ">/dev/full"})
    CHECK(tool({"show", "skinny_gemm"}, redirection).status == 1);
  CHECK(has(tool({"list"}, ">/dev/full").err, "standard output could not be written"));
}

TEST_SUITE_END();
