// jitsmith cache from the outside, on the host target.
#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <jitsmith/cache/build_lock.hpp>
#include <jitsmith/cache/file_system.hpp>

#include "copied_cache.hpp"

using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

std::vector<std::string> why(const std::string& m, const std::vector<std::string>& more) {
  std::vector<std::string> args{"cache", "why", "skinny_gemm", "--set", m, "--set", "n=4", "--set", "k=16"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith cache");

TEST_CASE("stat counts and names the limits and every tier") {
  Tool tool(filled_cache());
  tool.set("JITSMITH_CACHE_MAX_BYTES", "512M").set("JITSMITH_BUNDLES", "/nonexistent/a.jsb");
  const Json json = json_of(tool({"cache", "stat", "--json"}));
  CHECK(json["state"] == "usable");
  CHECK(json["entries"] == 2);
  CHECK(json["damaged"] == 0);
  CHECK(json["leftovers"] == 0);
  CHECK(json["limits"]["bytes"] == 512u << 20);
  CHECK(json["bundles"][0]["state"] == "refused");
  CHECK(json["bundles"][0]["path"] == "/nonexistent/a.jsb");
  CHECK(json["remote"]["state"] == "none");
  const ToolResult text = tool({"cache", "stat"});
  CHECK(has(text.out, "entries   2, "));
  CHECK(has(text.out, "limits    512.0 MiB size, 65536 entries"));
  CHECK(has(text.out, "bundle    /nonexistent/a.jsb, refused: "));
}

TEST_CASE("stat finds the locks working") {
  CHECK(json_of(Tool(filled_cache())({"cache", "stat", "--json"}))["locks"] == "work");
}

TEST_CASE("show tells all of one entry, by any beginning of its digest that is enough") {
  const Tool tool(filled_cache());
  const Json all = json_of(tool({"cache", "list", "--json"}));
  REQUIRE(all.size() == 2);
  const std::string digest = all[0]["digest"];
  const Json whole = json_of(tool({"cache", "show", digest, "--json"}));
  CHECK(whole["digest"] == digest);
  CHECK(whole["kind"] == "host_object");
  CHECK(whole["key"]["template"] == "skinny_gemm/simt.cu");
  CHECK(whole["key"]["target"] == "host host");
  CHECK(whole["facts"]["lowered_name"] == "jitsmith_host_kernel");
  CHECK(whole["places"][0]["tier"] == "directory");
  CHECK(whole["places"][0]["path"] == filled_cache());
  CHECK(json_of(tool({"cache", "show", digest.substr(0, 12), "--json"})) == whole);
  const ToolResult text = tool({"cache", "show", digest});
  CHECK(has(text.out, "digest  " + digest));
  CHECK(has(text.out, "  template = skinny_gemm/simt.cu\n"));
  CHECK(has(text.out, "last used <1 h ago"));
}

TEST_CASE("show refuses what is no digest, none's, or that of several") {
  const Tool tool(filled_cache());
  for (const char* key : {"xyz", "ABC", "0123456789abcdef0123456789abcdef0"}) {
    const ToolResult result = tool({"cache", "show", key});
    CHECK(result.status == 2);
    CHECK(has(result.err, "is no digest"));
  }
  const Json all = json_of(tool({"cache", "list", "--json"}));
  const ToolResult none = tool({"cache", "show", std::string(32, '0')});
  CHECK(none.status == 1);
  CHECK(has(none.err, "no entry of the directory or a bundle"));
  // Two entries whose digests begin alike are made by chance only; one entry in two places is still one.
  CHECK(tool({"cache", "show", all[1]["digest"].get<std::string>()}).status == 0);
}

TEST_CASE("verify fails when an entry is damaged, and says which and why") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  const ToolResult sound = tool({"cache", "verify"});
  CHECK(sound.status == 0);
  CHECK(sound.out == "2 sound, 0 left alone, 0 bad\n");
  flip_a_byte_of_every_entry(cache.path());
  const ToolResult damaged = tool({"cache", "verify"});
  CHECK(damaged.status == 1);
  CHECK(has(damaged.out, "0 sound, 0 left alone, 2 bad\n"));
  CHECK(has(damaged.out, "checksum"));
  const Json json = json_of(tool({"cache", "verify", "--json"}));
  CHECK(json["sound"] == 0);
  CHECK(json["bad"].size() == 2);
  CHECK(json["bad"][0]["tier"] == "directory");
  CHECK(entry_files(cache.path()).size() == 2);  // nothing is removed
}

TEST_CASE("an entry of a newer format is named and left alone, and is no damage") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  const std::filesystem::path newer = entry_files(cache.path()).front();
  const std::string digest = newer.stem();
  make_newer(newer);
  const std::string bytes = bytes_of(newer);
  const ToolResult verified = tool({"cache", "verify"});
  CHECK(verified.status == 0);
  CHECK(has(verified.out, digest + " in directory " + cache.path() + ": newer format 2, left alone\n"));
  CHECK(has(verified.out, "1 sound, 1 left alone, 0 bad\n"));
  Json json = json_of(tool({"cache", "verify", "--json"}));
  CHECK(json["left_alone"][0]["left_alone"] == "newer format 2");
  CHECK(json["bad"].empty());
  CHECK(has(tool({"cache", "list"}).out, "newer format 2, left alone\n"));
  CHECK(has(tool({"cache", "show", digest}).out, ", newer format 2, left alone\n"));
  CHECK(has(tool({"cache", "stat"}).out, ", 1 of a newer jitsmith, left alone\n"));
  Json stat = json_of(tool({"cache", "stat", "--json"}));
  CHECK(stat["damaged"] == 0);
  CHECK(stat["left_alone"] == 1);
  CHECK(bytes_of(newer) == bytes);
}

TEST_CASE("verify counts a bundle that is refused as bad") {
  Tool tool(filled_cache());
  const ToolResult result = tool.set("JITSMITH_BUNDLES", "/nonexistent/a.jsb")({"cache", "verify"});
  CHECK(result.status == 1);
  CHECK(has(result.out, "bundle /nonexistent/a.jsb: "));
}

TEST_CASE("trim takes limits from its options, and a dry run removes nothing") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  for (const auto& file : entry_files(cache.path()))  // younger ones are spared
    std::filesystem::last_write_time(file,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  const Json dry = json_of(tool({"cache", "trim", "--max-entries", "1", "--dry-run", "--json"}));
  CHECK(dry["dry_run"] == true);
  CHECK(dry["limits"]["entries"] == 1);
  CHECK(dry["before"]["entries"] == 2);
  CHECK(dry["removed"]["entries"].get<int>() >= 1);
  CHECK(entry_files(cache.path()).size() == 2);
  const ToolResult text = tool({"cache", "trim", "--max-bytes", "1"});
  CHECK(text.status == 0);
  CHECK(has(text.out, "before    2 entries"));
  CHECK(has(text.out, "removed   2 entries"));
  CHECK(has(text.out, "after     0 entries"));
  CHECK(entry_files(cache.path()).empty());
}

TEST_CASE("trim says how many entries are too young to go, when it stays over its limits for them") {
  const CopiedCache cache;
  const Tool tool(cache.path());
  const auto trim = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"cache", "trim", "--max-bytes", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return tool(args);
  };
  const std::string spared = "spared    2 entries younger than 10 minutes, so it ";
  CHECK(has(trim({}).out, spared + "stays over its limits"));
  CHECK(has(trim({"--dry-run"}).out, spared + "would stay over its limits"));
  CHECK(json_of(trim({"--json"}))["spared"] == 2);
  CHECK_FALSE(has(tool({"cache", "trim"}).out, "spared"));
}

TEST_CASE("trim gives no numbers while another process trims, and says that one does") {
  const CopiedCache cache;
  const int locks = ::open((cache.path() + "/v1/locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(jitsmith::real_file_system().lock_byte(locks, jitsmith::k_trim_lock_byte) == 0);
  const ToolResult result = Tool(cache.path())({"cache", "trim", "--json"});
  ::close(locks);
  CHECK(result.status == 1);
  CHECK(has(result.err, "another process trims the cache directory just now"));
  Json json = json_of(result);
  CHECK(json["left_to_another"] == true);
  CHECK_FALSE(json.contains("before"));
}

TEST_CASE("trim refuses limits that are no numbers") {
  const Tool tool(filled_cache());
  for (const char* bytes : {"1X", "-1", "M", "99999999999G"}) {
    const ToolResult result = tool({"cache", "trim", std::string("--max-bytes=") + bytes});
    CHECK(result.status == 2);
    CHECK(has(result.err, "is not a number of bytes"));
  }
  CHECK(has(tool({"cache", "trim", "--max-entries", "many"}).err, "is not a number of entries"));
}

TEST_CASE("without a directory there is nothing to trim, export or import") {
  const Tool off("/dev/null/cache");
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"cache", "trim"},
                                             {"cache", "export", "/tmp/x.jsb"},
                                             {"cache", "import", "/tmp/x.jsb"},
                                             {"cache", "clear"}}) {
    const ToolResult result = off(args);
    CHECK(result.status == 1);
    CHECK(has(result.err, "/dev/null/cache"));
  }
  CHECK(has(Tool(filled_cache()).set("JITSMITH_COLD", "1")({"cache", "clear"}).err, "cold mode"));
  CHECK(entry_files(filled_cache()).size() == 2);
}

TEST_CASE("why says that a kernel is cached, and by which key") {
  const Tool tool(filled_cache());
  const ToolResult result = tool(why("m=1", {"--arch", "host", "--json"}));
  CHECK(result.status == 0);
  const Json json = json_of(result);
  CHECK(json["cached"] == "directory");
  CHECK(json["nearest"]["differences"].empty());
  CHECK(tool({"cache", "show", json["key"].get<std::string>()}).status == 0);
  CHECK(has(tool(why("m=1", {"--device", "host"})).out, "cached    yes, in the directory"));
}

TEST_CASE("why names the fields in which the nearest key differs") {
  const Tool tool(filled_cache());
  const ToolResult text =
      tool(why("m=1", {"--arch", "host", "--set", "variant=simt:threads=128,tile_m=1,tile_n=4,unroll=1"}));
  CHECK(text.status == 1);
  CHECK(has(text.out, "cached    no"));
  CHECK(has(text.out,
            "the cache holds 2 kernels of this template for host; the nearest differs in "
            "parameter.threads (64, not 128)"));
  CHECK(has(text.out, "wanted int 128\n            had    int 64\n"));
  const Json json = json_of(tool(why("m=1", {"--arch", "sm_90a", "--json"})));
  CHECK(json["cached"].is_null());
  CHECK(has(json["holdings"], "2 kernels of this template for host and none for sm_90a"));
}

TEST_CASE("why needs no compiler, and says that the toolchain is not known") {
  Tool tool(filled_cache());
  tool.set("JITSMITH_HOST_CXX", "/nonexistent/c++");
  const std::vector<std::string> args = why("m=1", {"--arch", "host", "--json"});
  const ToolResult result = tool(args);
  CHECK(result.status == 1);  // the policy compile would need a compiler
  const Json json = json_of(result);
  CHECK(json["key"].is_null());
  CHECK(json["toolchain"].is_null());
  CHECK(json["cached_of_another_toolchain"] == "directory");
  CHECK(has(json["why_no_toolchain"], "/nonexistent/c++"));
  CHECK(has(tool(why("m=1", {"--arch", "host"})).out,
            "key       unknown, for its toolchain is: no C++ compiler"));
  CHECK(tool.set("JITSMITH_POLICY", "cached_only")(args).status == 0);
}

TEST_CASE("why refuses a request without an architecture, and tells one that needs no kernel") {
  const Tool tool(filled_cache());
  CHECK(tool(why("m=1", {})).status == 2);
  CHECK(has(tool(why("m=1", {"--arch", "host", "--device", "h200"})).err, "why needs one architecture"));
  CHECK(has(tool(why("m=33", {"--arch", "host"})).out, "none is needed: skinny_gemm serves m up to 32"));
}

TEST_CASE("--verbose ends with the statistics of the cache, also when the command fails") {
  const Tool tool(filled_cache());
  CHECK(has(tool({"--verbose", "cache", "list"}).err, "[cache.statistics] hits=0 "));
  Tool strict(filled_cache());
  strict.set("JITSMITH_POLICY", "cached_only").set("JITSMITH_TARGET", "host");
  const ToolResult demo = strict({"--verbose", "demo"});
  CHECK(demo.status == 1);
  CHECK(has(demo.err, "[cache.miss]"));
  CHECK(has(demo.err, "[cache.statistics] hits=0 "));
  CHECK_FALSE(has(tool({"cache", "list"}).err, "cache.statistics"));
}

TEST_SUITE_END();
