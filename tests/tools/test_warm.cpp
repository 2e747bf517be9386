// jitsmith warm from the outside: what is wanted, recordings, bundles. Most compiles are those of a stub that
// copies a ready object.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <jitsmith/runtime/engine.hpp>

#include "support/skip.hpp"
#include "warm_workshop.hpp"

using namespace jitsmith;
using namespace jitsmith::test;
using Json = nlohmann::json;

TEST_SUITE_BEGIN("jitsmith warm");

TEST_CASE("warm wants to be told what and for which architecture") {
  const Workshop shop;
  const Tool tool = shop.tool();
  CHECK(has(tool({"warm", "--all"}).err, "warm needs an architecture"));
  CHECK(has(tool({"warm", "--arch", "host"}).err, "warm needs to be told what"));
  CHECK(has(tool({"warm", "--all", "--set", "m=1", "--arch", "host"}).err, "--set belongs to an op"));
  CHECK(
      has(tool({"warm", "--all", "--arch", "sm_90a", "--device", "a100"}).err, "which --arch does not name"));
  CHECK(has(tool({"warm", "--from", "/nonexistent.json", "--arch", "host"}).err, "/nonexistent.json"));
}

TEST_CASE("a dry run lists every candidate of every architecture once") {
  const TempDir cache;
  const Json json =
      Json::parse(Tool(cache / "c")({"warm", "--all", "--arch", "host,host", "--dry-run", "--json"}).out);
  CHECK(json["missing"] == json["kernels"].size());
  CHECK(json["missing"] > 10);
  CHECK(json["compiled"] == 0);
  std::set<std::string> distinct;
  for (const Json& kernel : json["kernels"]) distinct.insert(kernel.dump());
  CHECK(distinct.size() == json["kernels"].size());
}

TEST_CASE("a dry run fails while something is missing, and succeeds once it is cached") {
  const TempDir cache;
  const Tool tool(cache / "c");
  const Args warm{"warm", "skinny_gemm", "--set", "m=1", "--set", "n=4", "--set", "k=16", "--arch", "host"};
  const ToolResult before = tool(with(warm, {"--dry-run"}));
  CHECK(before.status == 1);
  CHECK(has(before.out, "1 kernel: 0 already cached, 0 compiled, 1 missing, 0 failed"));
  CHECK(before.err.empty());
  CHECK(tool(with(warm, {"--dry-run", "--json"})).status == 1);
  REQUIRE(tool(warm).status == 0);
  const ToolResult after = tool(with(warm, {"--dry-run"}));
  CHECK(after.status == 0);
  CHECK(has(after.out, "1 kernel: 1 already cached, 0 compiled, 0 missing, 0 failed"));
  CHECK(tool(with(warm, {"--set", "out=f32", "--dry-run"})).status == 1);
  const ToolResult none = Tool("/dev/null/cache")(with(warm, {"--dry-run"}));
  CHECK(none.status == 1);
}

TEST_CASE("a dry run changes nothing in the cache, not even an entry that is damaged or old") {
  const Workshop shop;
  REQUIRE(shop.tool()(shop.warm()).status == 0);
  const auto entries = [&] {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& file : std::filesystem::recursive_directory_iterator(shop / "cache"))
      times[file.path().string()] = file.last_write_time();
    return times;
  };
  bool damaged = false;
  for (const auto& file : std::filesystem::recursive_directory_iterator(shop / "cache")) {
    if (file.path().extension() != ".jse") continue;
    if (!std::exchange(damaged, true)) std::ofstream(file.path(), std::ios::app) << "more";
    std::filesystem::last_write_time(file.path(), file.last_write_time() - std::chrono::hours(48));
  }
  const auto before = entries();
  const ToolResult result = shop.tool()(with(shop.warm(), {"--dry-run"}));
  CHECK(has(result.out, k_counts + "3 already cached, 0 compiled, 1 missing, 0 failed\n"));
  CHECK(entries() == before);
}

TEST_CASE("without NVRTC a warm lists what failed") {
  const TempDir cache;
  const ToolResult result =
      Tool(cache / "c")
          .set("JITSMITH_NVRTC", "/nonexistent")(
              {"warm", "skinny_gemm", "--set", "m=1", "--set", "n=8", "--set", "k=8", "--arch", "sm_90a"});
  CHECK(result.status == 1);
  CHECK(has(result.err, "failed: JITSMITH_NVRTC names /nonexistent"));
  CHECK(has(result.out, "1 failed"));
}

TEST_CASE("what a program asked for is warmed from its recording, and is then all there") {
  const Workshop shop;
  Options options = shop.options();
  options.record = shop / "recording";
  {
    Engine program(options);
    for (const std::int64_t m : {1, 2, 4, 8, 8})
      CHECK_THROWS_AS(
          program.warm({"skinny_gemm", {{"m", m}, {"n", std::int64_t{2112}}, {"k", std::int64_t{7168}}}},
                       device_profile("host")),
          NotCached);
  }
  const ToolResult result = shop.tool()({"warm", "--recording", options.record});
  CHECK(result.status == 0);
  CHECK(has(result.out, k_counts + "0 already cached, 4 compiled, 0 missing, 0 failed\n"));
  options.record.clear();
  Engine program(options);
  for (const std::int64_t m : {1, 2, 4, 8})
    CHECK(program.warm({"skinny_gemm", {{"m", m}, {"n", std::int64_t{2112}}, {"k", std::int64_t{7168}}}},
                       device_profile("host")) == BinarySource::disk);
}

TEST_CASE("warming is not recorded itself") {
  const Workshop shop;
  Tool tool = shop.tool();
  CHECK(tool.set("JITSMITH_RECORD", shop / "recording")(shop.warm()).status == 0);
  CHECK(!std::filesystem::exists(shop / "recording"));
}

TEST_CASE("a record that this command cannot have is told, and the others are warmed") {
  const Workshop shop;
  std::ofstream(shop / "recording")
      << R"({"op":"theirs","arch":"host","variant":"v","params":{}})"
      << "\n"
      << R"({"op":"skinny_gemm","arch":"host","variant":"simt","params":{}})"
      << "\n"
      << "7\n"
      << R"({"op":"skinny_gemm","arch":"host","variant":"magic","params":{}})"
      << "\n"
      << R"({"op":"skinny_gemm","arch":"host","variant":"simt","params":{"threads":7}})"
      << "\n"
      << R"({"op":"skinny_gemm","arch":"toaster","variant":"simt","params":{}})"
      << "\ntorn {\n";
  const ToolResult result = shop.tool()({"warm", "--recording", shop / "recording"});
  CHECK(result.status == 1);  // the image that this builds would lack them
  CHECK(has(result.out, "1 kernel: 0 already cached, 1 compiled"));
  std::size_t last = 0;  // they come in the order of the file, what is torn after them
  for (const char* problem :
       {"recording:1: op 'theirs' is none of this command's", "recording:3: the record is 7",
        "recording:4: skinny_gemm has no variant 'magic'",
        "recording:5: ", "recording:6: 'toaster' is no architecture", "1 of its lines is no JSON"}) {
    const std::size_t place = result.err.find(problem);
    CHECK_MESSAGE((place != std::string::npos && place > last), result.err);
    last = place;
  }
  CHECK(std::ranges::count(result.err, '\n') == 6);
  const Json json = Json::parse(shop.tool()({"warm", "--recording", shop / "recording", "--json"}).out);
  CHECK(json["problems"].size() == 5);
  CHECK(json["torn"].size() == 1);
  const ToolResult none = shop.tool()({"warm", "--recording", shop / "nowhere"});
  CHECK(none.status == 2);
  CHECK(has(none.err, "the recording can't be read: No such file"));
}

TEST_CASE("a recording that a crash tore is warmed like any other, and says so") {
  const Workshop shop;
  const std::string record = R"({"op":"skinny_gemm","arch":"host","variant":"simt","params":{}})";
  std::ofstream(shop / "recording") << record.substr(0, 40) << record << '\n'
                                    << record << '\n'
                                    << record.substr(0, 30);
  for (const char* cached : {"0 already cached, 1 compiled", "1 already cached, 0 compiled"}) {
    const ToolResult result = shop.tool()({"warm", "--recording", shop / "recording"});
    CHECK_MESSAGE(result.status == 0, result.err);
    CHECK(has(result.out, cached));
    CHECK(has(result.err, "recording: 2 of its lines are no JSON and skipped, the first is line 1; "));
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
  std::ofstream(shop / "other") << "no recording\nat all\n";
  const ToolResult other = shop.tool()({"warm", "--recording", shop / "other"});
  CHECK(other.status == 1);
  CHECK_MESSAGE(has(other.err, "/other has no request and no record, so nothing is warmed"), other.err);
}

TEST_CASE("what is wrong with a request of a file is told with its place") {
  const Workshop shop;
  const auto refusal = [&](const std::string& requests) {
    std::ofstream(shop / "wrong.json") << R"({"name": "wrong", "requests": [)" << requests << "]}";
    const ToolResult result = shop.tool()({"warm", "--from", shop / "wrong.json", "--arch", "host"});
    CHECK(result.status == 2);
    return result.err;
  };
  const std::string right = R"({"op": "skinny_gemm", "m": 1, "n": 8, "k": 8}, )";
  CHECK(has(refusal(right + R"({"op": "theirs", "m": 1})"),
            "wrong.json: requests[1]: there is no op 'theirs'; "));
  CHECK(has(refusal(right + right + R"({"op": "skinny_gemm", "m": 1})"), "wrong.json: requests[2]: "));
}

TEST_CASE("files that ask for nothing are a failure that says so") {
  const Workshop shop;
  std::ofstream(shop / "none.json") << R"({"name": "none", "requests": []})";
  std::ofstream(shop / "recording").flush();
  const ToolResult from = shop.tool()({"warm", "--from", shop / "none.json", "--arch", "host"});
  CHECK(from.status == 1);
  CHECK_MESSAGE(has(from.err, "none.json has no request and no record, so nothing is warmed"), from.err);
  const ToolResult recording = shop.tool()({"warm", "--recording", shop / "recording"});
  CHECK(recording.status == 1);
  CHECK_MESSAGE(has(recording.err, "/recording has no request and no record"), recording.err);
}

TEST_CASE("a recording keeps to its architectures unless it is told others") {
  const Workshop shop;
  // Not what would be selected for this request.
  std::ofstream(shop / "recording")
      << R"({"op":"skinny_gemm","arch":"sm_90a","variant":"simt","params":{"threads":32,"tile_m":1},)"
      << R"("request":{"m":4,"n":2112,"k":7168}})"
      << "\n"
      << R"({"op":"skinny_gemm","arch":"sm_90a","variant":"simt","params":{"threads":64,"tile_m":1}})"
      << "\n";
  const auto kernels = [&](const Args& more) {
    return Json::parse(
        shop.tool()(with({"warm", "--recording", shop / "recording", "--dry-run", "--json"}, more)).out);
  };
  const Json own = kernels({});
  REQUIRE(own["kernels"].size() == 2);
  CHECK(own["kernels"][0]["arch"] == "sm_90a");
  CHECK(own["kernels"][0]["params"]["threads"] == 32);
  CHECK(kernels({"--arch", "sm_90a"})["kernels"] == own["kernels"]);

  const Json host = kernels({"--arch", "host"});
  REQUIRE(host["kernels"].size() == 1);
  const Json selected = Json::parse(shop.tool()({"explain", "skinny_gemm", "--set", "m=4", "--set", "n=2112",
                                                 "--set", "k=7168", "--arch", "host", "--json"})
                                        .out);
  CHECK(host["kernels"][0]["params"] == selected["winner"]["params"]);
  REQUIRE(host["problems"].size() == 1);
  CHECK(has(host["problems"][0], "recording:2: the record names no request to choose for host by"));
  CHECK(kernels({"--arch", "host,sm_90a"})["kernels"].size() == 3);
  CHECK(kernels({"--device", "h100"})["kernels"] == own["kernels"]);
}

TEST_CASE("a bundle has the bytes of its set, however it was made") {
  const Workshop shop;
  const auto bundle = [&](const std::string& name, const std::string& cache, const char* jobs) {
    const ToolResult result =
        shop.tool(cache)(with(shop.warm(), {"--into", shop / name, "--jobs", jobs, "--json"}));
    CHECK_MESSAGE(result.status == 0, result.err);
    CHECK(Json::parse(result.out)["bundle"]["entries"] == 4);
    return bytes_of(shop / name);
  };
  const std::string one = bundle("one.jsb", "c1", "1");
  CHECK(one.size() > 1000);
  CHECK(bundle("four.jsb", "c4", "4") == one);
  CHECK(bundle("four.jsb", "c4", "4") == one);  // all of it cached, over an old file
  // A cache with more in it gives no more.
  REQUIRE(shop.tool("c4")(
                  {"warm", "skinny_gemm", "--set", "m=3", "--set", "n=64", "--set", "k=64", "--arch", "host"})
              .status == 0);
  CHECK(bundle("set.jsb", "c4", "2") == one);
  Tool off = shop.tool();
  CHECK(off.set("JITSMITH_CACHE", "0")(with(shop.warm(), {"--into", shop / "off.jsb"})).status == 0);
  CHECK(bytes_of(shop / "off.jsb") == one);
  Tool cold = shop.tool();
  cold.set("JITSMITH_COLD", "1").set("JITSMITH_BUNDLES", shop / "one.jsb");
  const ToolResult anew = cold(with(shop.warm(), {"--into", shop / "cold.jsb"}));
  CHECK_MESSAGE(has(anew.out, k_counts + "0 already cached, 4 compiled"), anew.out);
  CHECK(bytes_of(shop / "cold.jsb") == one);
  Tool dry = shop.tool("empty");
  CHECK(dry.set("JITSMITH_BUNDLES", shop / "one.jsb")(with(shop.warm(), {"--dry-run"})).status == 0);
  CHECK(!std::filesystem::exists(shop / "empty"));
  CHECK(bundle("private.jsb", "/dev/null/cache", "2") == one);
  CHECK(shop.no_temporary_left());
}

TEST_CASE("a bundle that would be incomplete is not written") {
  const Workshop shop("if [ $TILE = 4 ]; then echo 'a.cu:1:1: error: no'; exit 1; fi");
  std::ofstream(shop / "b.jsb") << "old";
  const ToolResult result = shop.tool()(with(shop.warm(), {"--into", shop / "b.jsb"}));
  CHECK(result.status == 1);
  CHECK(has(result.err, "b.jsb is not written"));
  CHECK(bytes_of(shop / "b.jsb") == "old");
  const Json json = Json::parse(shop.tool()(with(shop.warm(), {"--into", shop / "b.jsb", "--json"})).out);
  CHECK(has(json.value("why_no_bundle", ""), "b.jsb is not written, for kernels are missing in it"));
  CHECK(shop.tool()(with(shop.warm(), {"--into", shop / "b.jsb", "--dry-run"})).status == 2);
  // No device: without the check a test that runs as root would put a file in the place of the system's own.
  std::filesystem::create_symlink("b.jsb", shop / "link.jsb");
  REQUIRE(::mkfifo((shop / "fifo").c_str(), 0600) == 0);
  for (const std::string& place : {std::string("/nonexistent/b.jsb"), shop / "fifo", shop / "link.jsb"})
    CHECK(has(shop.tool()(with(shop.warm(), {"--into", place})).err, "--into " + place));
}

TEST_CASE("a kernel for a GPU needs NVRTC and no GPU") {
  if (!have_nvrtc()) return;
  const TempDir cache;
  Tool tool(cache / "c");
  tool.set("JITSMITH_NVRTC", locate_nvrtc(nvrtc_search_from_environment()));
  const Args warm{"warm", "skinny_gemm", "--set", "m=1",    "--set",
                  "n=64", "--set",       "k=64",  "--arch", "sm_90a"};
  const ToolResult result = tool(with(warm, {"--verbose"}));
  CHECK(result.status == 0);
  CHECK(has(result.out, "1 compiled"));
  CHECK(has(result.err, "[warm.memory] a worker or its compiler took up to "));
  CHECK(has(tool(warm).out, "1 already cached"));
}

TEST_SUITE_END();
