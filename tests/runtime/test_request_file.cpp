#include <jitsmith/runtime/request_file.hpp>

#include <fstream>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/request.hpp>

#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

const std::string k_file = R"({"name": "decode", "requests": [
  {"op": "gemm", "m": [1, 2], "n": 2112, "out": ["bf16", "f32"]},
  {"batched": true, "op": "stage"}
]})";

RequestFile parse_entry(const std::string& entry) {
  return RequestFile::parse(fmt::format(R"({{"name": "x", "requests": [{{"op": "a"}}, {}]}})", entry),
                            "f.json");
}

std::string list_of(int count) {
  std::string list = "[0";
  for (int i = 1; i < count; ++i) list += fmt::format(",{}", i);
  return list + "]";
}

Schema schema() {
  Schema schema;
  schema.integer("m", {.min = 1, .max = 32}, "rows");
  schema.type("out", {ElementType::bf16, ElementType::f32}, "output", ElementType::bf16);
  schema.boolean("batched", "one for all", false);
  return schema;
}

}  // namespace

TEST_SUITE_BEGIN("RequestFile");

TEST_CASE("lists mean every combination, in the order of the file") {
  const RequestFile file = RequestFile::parse(k_file, "f.json");
  CHECK(file.name == "decode");
  REQUIRE(file.requests.size() == 5);
  CHECK(file.requests[0].op == "gemm");
  CHECK(file.requests[0].params == Texts{{"m", "1"}, {"n", "2112"}, {"out", "bf16"}});
  CHECK(file.requests[1].params == Texts{{"m", "1"}, {"n", "2112"}, {"out", "f32"}});
  CHECK(file.requests[2].params == Texts{{"m", "2"}, {"n", "2112"}, {"out", "bf16"}});
  CHECK(file.requests[3].params == Texts{{"m", "2"}, {"n", "2112"}, {"out", "f32"}});
  CHECK(file.requests[3].index == 0);
  CHECK(file.requests[4].op == "stage");
  CHECK(file.requests[4].params == Texts{{"batched", "true"}});
  CHECK(file.requests[4].index == 1);
}

TEST_CASE("its JSON reads back as the same requests") {
  RequestFile file = RequestFile::parse(k_file, "f.json");
  file.name = "a \"quoted\"\nname";
  file.requests[4].params.emplace_back("text", "007");
  const std::string json = to_json(file);
  CHECK(json.find(R"({"op":"stage","batched":true,"text":"007"})") != std::string::npos);
  const RequestFile again = RequestFile::parse(json, "g.json");
  CHECK(again.name == file.name);
  REQUIRE(again.requests.size() == file.requests.size());
  for (std::size_t i = 0; i < file.requests.size(); ++i) {
    CHECK(again.requests[i].op == file.requests[i].op);
    CHECK(again.requests[i].params == file.requests[i].params);
  }
  CHECK(to_json(again) == json);
  CHECK(RequestFile::parse(to_json({.name = "none"}), "h.json").requests.empty());
}

TEST_CASE("a schema types the values") {
  const RawRequest raw{.op = "gemm", .params = {{"m", "4"}, {"out", "f32"}, {"batched", "true"}}, .index = 7};
  const Params typed = raw.typed(schema(), "f.json");
  CHECK(typed == Params{{"m", std::int64_t{4}}, {"out", ElementType::f32}, {"batched", true}});
  CHECK(to_string(Request{"gemm", typed}) == "gemm m=4,out=f32,batched=true");
  CHECK(to_string(Request{"gemm", {}}) == "gemm");
}

TEST_CASE("a value that the schema refuses is named with its file and index") {
  const RawRequest large{.op = "gemm", .params = {{"m", "33"}}, .index = 7};
  CHECK_THROWS_WITH_AS(large.typed(schema(), "f.json"),
                       "f.json: requests[7] (gemm): m=33 is not allowed; give an integer from 1 to 32",
                       InvalidRequest);
  const RawRequest unknown{.op = "gemm", .params = {{"q", "1"}}, .index = 7};
  CHECK_THROWS_WITH_AS(unknown.typed(schema(), "f.json"),
                       "f.json: requests[7] (gemm) has no parameter 'q'; it has m, out, batched",
                       InvalidRequest);
}

TEST_CASE("a wrong file is refused in one sentence") {
  const std::pair<std::string, const char*> cases[] = {
      {"", "f.json: line 1 column 1 is not valid JSON"},
      {"{\"name\": \"x\",\n \"requests\": [},\n]}", "f.json: line 2 column 15 is not valid JSON"},
      {k_file + "x", "f.json: line 4 column 3 is not valid JSON"},
      {"{\"name\": \"\xff\"}", "is not valid JSON"},
      {"[]", "it is []; give an object"},
      {R"({"requests": []})", "\"name\" is missing"},
      {R"({"name": 1, "requests": []})", "\"name\" is missing or no string"},
      {R"({"name": "x"})", "\"requests\" is missing"},
      {R"({"name": "x", "requests": {}})", "\"requests\" is missing or no list"},
      {R"({"name": "x", "requests": [], "what": 1})", "the key \"what\" is unknown"},
      {R"({"name": "x", "requests": [], "name": "y"})", "the key \"name\" is twice in one object"},
      {R"({"name": "x", "requests": [[[[[]]]]]})", "nests deeper than 4 levels"},
      {std::string(1'000'000, '['), "nests deeper"},
      {R"({"name": "x", "requests": [], "z": 1e999})", "a number is too large"},
  };
  for (const auto& [text, says] : cases)
    CHECK_THROWS_WITH_AS(RequestFile::parse(text, "f.json"), doctest::Contains(says), InvalidRequest);
}

TEST_CASE("a wrong request is named by its index and key") {
  const std::pair<std::string, const char*> cases[] = {
      {"7", "f.json: requests[1] is 7; give an object"},
      {R"({"m": 1})", "requests[1].op is missing"},
      {R"({"op": ["a", "b"]})", "requests[1].op is missing or no name"},
      {R"({"op": ""})", "requests[1].op is missing or no name"},
      {R"({"op": "a", "m": 1.5})", "requests[1].m is 1.5; give an integer, true, false, a string, or a list"},
      {R"({"op": "a", "m": [1, null]})", "requests[1].m is null"},
      {R"({"op": "a", "m": {}})", "requests[1].m is {}"},
      {R"({"op": "a", "m": 9223372036854775808})", "requests[1].m is 9223372036854775808"},
      {R"({"op": "a", "m": []})", "requests[1].m is an empty list"},
      {R"({"op": "a", "": 1})", "requests[1] has the key \"\""},
      {R"({"op": "a", "m": 1, "m": 2})", "the key \"m\" is twice"},
      {R"({"op": "a", "m": ")" + std::string(65, 'x') + "\"}", "give at most 64 bytes"},
      {R"({"op": "a", ")" + std::string(65, 'x') + "\": 1}", "give one of 1 to 64 bytes"},
  };
  for (const auto& [entry, says] : cases)
    CHECK_THROWS_WITH_AS(parse_entry(entry), doctest::Contains(says), InvalidRequest);

  std::string many_keys = R"({"op": "a")";
  for (int i = 0; i < 32; ++i) many_keys += fmt::format(", \"k{}\": 1", i);
  CHECK_THROWS_WITH_AS(parse_entry(many_keys + "}"), doctest::Contains("more than 32 keys"), InvalidRequest);
}

TEST_CASE("the number of requests is capped before they are made") {
  const std::string list = list_of(316);  // 316 * 316 = 99856
  CHECK(parse_entry(fmt::format(R"({{"op": "a", "m": {0}, "n": {0}}})", list)).requests.size() == 99'857);
  const char* says = "brings the file over 100000 requests";
  const std::string too_many[] = {
      fmt::format(R"({{"op": "a", "m": {}, "n": {}}})", list, list_of(317)),
      fmt::format(R"({{"op": "a", "a": {0}, "b": {0}, "c": {0}, "d": {0}, "e": {0}, "f": {0}, "g": {0}}})",
                  list_of(999)),
      fmt::format(R"({{"op": "a", "m": {}}}, {{"op": "a"}})", list_of(99'999)),
      fmt::format(R"({{"op": "a", "m": {}}}, {{"op": "a", "m": 1}})", list_of(99'999)),
  };
  for (const std::string& entry : too_many)
    CHECK_THROWS_WITH_AS(parse_entry(entry), doctest::Contains(says), InvalidRequest);
}

TEST_CASE("files are read, and refused when they can't be") {
  const test::TempDir dir;
  std::ofstream(dir / "good.json") << k_file;
  CHECK(RequestFile::read(dir / "good.json").requests.size() == 5);
  CHECK_THROWS_WITH_AS(RequestFile::read(dir / "absent"), doctest::Contains("No such file"), InvalidRequest);
  CHECK_THROWS_WITH_AS(RequestFile::read(dir / ""), doctest::Contains("no regular file"), InvalidRequest);
  std::ofstream(dir / "huge").seekp(17 << 20).put('x');
  CHECK_THROWS_WITH_AS(RequestFile::read(dir / "huge"), doctest::Contains("more than 16777216"),
                       InvalidRequest);
}

TEST_CASE("a damaged file is refused or means other requests, never more") {
  std::minstd_rand random(1);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = k_file;
    for (auto flips = random() % 3; flips > 0; --flips)
      text[random() % text.size()] ^= static_cast<char>(1u << random() % 8);
    if (random() % 4 == 0) text.resize(random() % text.size());
    try {
      const RequestFile file = RequestFile::parse(text, "f.json");
      CHECK(to_json(RequestFile::parse(to_json(file), "g.json")) == to_json(file));
    } catch (const InvalidRequest& error) {
      ++refused;
      CHECK(std::string_view(error.what()).starts_with("f.json: "));
      CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
  }
  CHECK(refused > 1'000);
}

TEST_SUITE_END();

}  // namespace jitsmith
