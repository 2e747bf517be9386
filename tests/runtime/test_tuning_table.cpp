#include <jitsmith/runtime/tuning_table.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

const std::string k_row =
    R"({"op": "gemm", "arch": "sm_90a", "multiprocessors": 132, "when": {"m": [1, 2], "n": 2112, "out": "bf16"}, )"
    R"("variant": "simt", "params": {"threads": 128, "split": true, "order": "rows"}, )"
    R"("measured": {"us": 9.1, "replaced": "heuristic", "replaced_us": 9.8, "rounds": 3, "rounds_overlap": false}, )"
    R"("provenance": {"device": "some GPU", "compiler": "NVRTC 13.0", "date": "2026-01-31"}})";

std::string with(std::string_view from, std::string_view to) {
  std::string row = k_row;
  const std::size_t at = row.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return row.replace(at, from.size(), to);
}

// The one problem of a text; it must not stop the good row after it from being read.
std::string problem_of(const std::string& line) {
  std::vector<std::string> problems;
  const TuningTable table = TuningTable::parse(line + "\n" + k_row, "t.jsonl", problems);
  CHECK(table.rows().size() == 1);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find('\n') == std::string::npos);
  return problems[0];
}

TuningTable parse_good(std::string_view text) {
  std::vector<std::string> problems;
  TuningTable table = TuningTable::parse(text, "t.jsonl", problems);
  for (const std::string& problem : problems) FAIL_CHECK(problem);
  return table;
}

DeviceFacts device(std::uint32_t multiprocessors = 132) {
  return {.name = "any", .target = {Executor::cuda, "sm_90a"}, .multiprocessors = multiprocessors};
}

Params request(std::int64_t m, std::int64_t n) {
  return {{"m", m}, {"n", n}, {"out", ElementType::bf16}};
}

// A row whose `variant` says which one it is.
TableRow row(std::string variant, std::map<std::string, TableRow::Condition> when,
             std::optional<std::uint32_t> multiprocessors = {}) {
  return {.op = "gemm",
          .arch = "sm_90a",
          .multiprocessors = multiprocessors,
          .when = std::move(when),
          .variant = std::move(variant),
          .provenance = {{"note", "published, not measured here"}}};
}

std::string winner(const std::vector<TableRow>& rows, const Params& wanted,
                   const DeviceFacts& on = device()) {
  TuningTable table;
  for (const TableRow& r : rows) table.add(r);
  const TableRow* match = table.match("gemm", wanted, on);
  return match == nullptr ? "none" : match->variant;
}

using Range = std::pair<std::int64_t, std::int64_t>;

}  // namespace

TEST_SUITE_BEGIN("TuningTable");

TEST_CASE("a row is read in full") {
  const TuningTable table = parse_good("\n  \r\n" + k_row + "\r\n");
  REQUIRE(table.rows().size() == 1);
  const TableRow& r = table.rows()[0];
  CHECK(r.op == "gemm");
  CHECK(r.arch == "sm_90a");
  CHECK(r.multiprocessors == 132u);
  CHECK(r.when ==
        std::map<std::string, TableRow::Condition>{{"m", Range{1, 2}}, {"n", "2112"}, {"out", "bf16"}});
  CHECK(r.variant == "simt");
  CHECK(r.params == std::vector<std::pair<std::string, std::string>>{
                        {"order", "rows"}, {"split", "true"}, {"threads", "128"}});
  REQUIRE(r.measured);
  CHECK(r.measured->us == 9.1);
  CHECK(r.measured->replaced == "heuristic");
  CHECK(r.measured->replaced_us == 9.8);
  CHECK(r.measured->rounds == 3);
  CHECK_FALSE(r.measured->rounds_overlap);
  CHECK(r.provenance.at("compiler") == "NVRTC 13.0");
}

TEST_CASE("the text is canonical and survives a round trip") {
  TuningTable table = parse_good(k_row);
  table.add(row("b", {{"m", "007"}, {"flag", "true"}, {"k", Range{-5, 9'000'000'000}}}));
  TableRow unsorted = row("c\xff\"\n", {}, 148);
  unsorted.params = {{"z", "1"}, {"a", "x"}};
  table.add(unsorted);
  const std::string text = table.text();
  CHECK(
      text.starts_with(R"({"arch":"sm_90a","measured":{"replaced":"heuristic","replaced_us":9.8,"rounds":3,)"
                       R"("rounds_overlap":false,"us":9.1},"multiprocessors":132,"op":"gemm","params":)"
                       R"({"order":"rows","split":true,"threads":128},"provenance":{)"));
  CHECK(text.find(R"("when":{"flag":true,"k":[-5,9000000000],"m":"007"})") != std::string::npos);
  CHECK(text.find(R"("params":{"a":"x","z":1})") != std::string::npos);
  CHECK(std::ranges::count(text, '\n') == 3);
  const TuningTable again = parse_good(text);
  CHECK(again.text() == text);
  REQUIRE(again.rows().size() == 3);
  CHECK(again.rows()[1].when == table.rows()[1].when);
  CHECK(again.rows()[2].params == table.rows()[2].params);
}

TEST_CASE("a bad line is skipped and said") {
  struct Bad {
    std::string line, says;
  };
  const Bad cases[] = {
      {"nonsense", "t.jsonl:1: column 2 is not valid JSON"},
      {"3", "the row is 3; give an object"},
      {with("132,", "132, \"typo\\n\": 1,"), R"(the row has the unknown key "typo\n")"},
      {with("\"us\"", "\"ms\": 1, \"us\""), R"('measured' has the unknown key "ms")"},
      {with("132,", "132, \"op\": \"again\","), R"(the key "op" is there twice)"},
      {with("\"n\": 2112", "\"m\": 2112"), R"(the key "m" is there twice)"},
      {with("\"op\": \"gemm\", ", ""), "'op' is missing"},
      {with("\"gemm\"", "\"\""), "'op' is \"\"; give a string"},
      {with("\"simt\"", "7"), "'variant' is 7; give a string"},
      {with("132", "0"), "'multiprocessors' is 0; give an integer from 1 to 4294967295"},
      {with("132", "4294967297"), "'multiprocessors' is 4294967297"},
      {with("132", "null"), "'multiprocessors' is null"},
      {with("[1, 2]", "[2, 1]"), "\"m\" is [2,1]; a range is two integers"},
      {with("[1, 2]", "[1, 2, 3]"), "\"m\" is [1,2,3]; a range"},
      {with("[1, 2]", "[]"), "\"m\" is []; a range"},
      {with("[1, 2]", "[1, 9223372036854775808]"), "a range is two integers"},
      {with("2112", "9223372036854775808"), "\"n\" is 9223372036854775808; give an integer"},
      {with("[1, 2]", "1.5"), "\"m\" is 1.5; give an integer, true, false or a string"},
      {with("{\"m\": [1, 2], \"n\": 2112, \"out\": \"bf16\"}", "[1]"), "'when' is [1]; give an object"},
      {with("128", "{}"), "\"threads\" is {}; give an integer"},
      {with("[1, 2]", "[[[1]]]"), "nests deeper than 3 levels"},
      {with("9.1", "-9.1"), "'us' is -9.1; give a time above zero"},
      {with("9.1", "0"), "'us' is 0; give a time"},
      {with("9.1", "NaN"), "is not valid JSON"},
      {with("9.1", "1e999"), "a number is too large"},
      {with("9.8", "\"9.8\""), "'replaced_us' is \"9.8\"; give a time"},
      {with("\"rounds\": 3", "\"rounds\": 0"), "'rounds' is 0; give an integer from 1"},
      {with("\"rounds\": 3", "\"rounds\": 2.5"), "'rounds' is 2.5"},
      {with("false", "0"), "'rounds_overlap' is 0; give true or false"},
      {with("9.1", "9.4"), "9.4 us is not 5 % faster than 9.8 us of \"heuristic\""},
      {with("false", "true"), "the rounds overlap"},
      {with("2026-01-31\"", "2026-01-31\", \"note\": 5"), "\"note\" is 5; provenance is strings"},
      {k_row + k_row, "is not valid JSON"},
      {with("gemm", "\xff"), "is not valid JSON"},
      {with("gemm", std::string(70'000, 'x')), "bytes; a row has at most 65536"},
      {std::string(60'000, '['), "nests deeper"},
  };
  for (const Bad& bad : cases) {
    const std::string problem = problem_of(bad.line);
    CHECK_MESSAGE(problem.starts_with("t.jsonl:1: "), problem);
    CHECK_MESSAGE(problem.find(bad.says) != std::string::npos, problem);
    CHECK(problem.size() < 300);
  }
}

TEST_CASE("a row that was not measured must say so") {
  const std::size_t from = k_row.find("\"measured\""), to = k_row.find("\"provenance\"");
  const std::string unmeasured = k_row.substr(0, from) + k_row.substr(to);
  CHECK(problem_of(unmeasured).find("the row has no 'measured'") != std::string::npos);
  std::string other_note = unmeasured;
  other_note.insert(other_note.find("\"device\""), R"("note": "looked fast", )");
  CHECK(problem_of(other_note).find("the row has no 'measured'") != std::string::npos);
  std::string noted = unmeasured;
  noted.insert(noted.find("\"device\""), R"("note": "vendor table; published, not measured here", )");
  CHECK(parse_good(noted).rows().size() == 1);
}

TEST_CASE("a request and a template parameter may share a name") {
  CHECK(parse_good(with("\"threads\": 128", "\"m\": 128")).rows().size() == 1);
}

TEST_CASE("exactly 5 % is enough") {
  CHECK(parse_good(with("9.1, \"replaced\": \"heuristic\", \"replaced_us\": 9.8",
                        "2.85, \"replaced\": \"x\", \"replaced_us\": 3"))
            .rows()
            .size() == 1);
}

TEST_CASE("problems name the line and do not flood") {
  std::string text = k_row + "\n\n";
  for (int i = 0; i < 5'000; ++i) text += "x\n";
  std::vector<std::string> problems;
  CHECK(TuningTable::parse(text, "t", problems).rows().size() == 1);
  REQUIRE(problems.size() == 101);
  CHECK(problems[0].starts_with("t:3: "));
  CHECK(problems[100] == "t: 4900 more lines are bad and skipped");
}

TEST_CASE("match wants every condition to hold") {
  const TableRow r = row("r", {{"m", Range{2, 4}}, {"n", "2112"}, {"out", "bf16"}}, 132);
  CHECK(winner({r}, request(2, 2112)) == "r");
  CHECK(winner({r}, request(4, 2112)) == "r");
  CHECK(winner({r}, request(1, 2112)) == "none");
  CHECK(winner({r}, request(5, 2112)) == "none");
  CHECK(winner({r}, request(2, 2113)) == "none");
  CHECK(winner({r}, request(2, 2112), device(114)) == "none");
  CHECK(winner({r}, {{"m", std::int64_t{2}}, {"n", std::int64_t{2112}}}) == "none");
  CHECK(winner({row("range of a text", {{"out", Range{0, 1}}})}, request(2, 2112)) == "none");
  CHECK(winner({row("unknown parameter", {{"z", "1"}})}, request(2, 2112)) == "none");
  TuningTable table;
  table.add(r);
  CHECK(table.match("other", request(2, 2112), device()) == nullptr);
  DeviceFacts other = device();
  other.target.arch = "sm_80";
  CHECK(table.match("gemm", request(2, 2112), other) == nullptr);
}

TEST_CASE("of several matching rows the most exact wins, in any order") {
  std::vector<TableRow> rows{
      row("range", {{"m", Range{1, 8}}}), row("one", {{"m", "4"}, {"n", Range{1, 9999}}}),
      row("two", {{"m", "4"}, {"n", "2112"}}), row("three", {{"m", "4"}, {"n", "2112"}}, 132)};
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    std::vector<TableRow> permuted;
    for (const std::size_t i : order) permuted.push_back(rows[i]);
    CHECK(winner(permuted, request(4, 2112)) == "three");
    CHECK(winner(permuted, request(4, 2112), device(114)) == "two");
    CHECK(winner(permuted, request(4, 7)) == "one");
    CHECK(winner(permuted, request(3, 7)) == "range");
    CHECK(winner(permuted, request(9, 7)) == "none");
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("of equally exact rows the earlier wins") {
  const TableRow a = row("a", {{"m", "4"}}), b = row("b", {{"n", "7"}}), c = row("c", {}, 132);
  CHECK(winner({a, b, c}, request(4, 7)) == "a");
  CHECK(winner({b, c, a}, request(4, 7)) == "b");
  CHECK(winner({c, a, b}, request(4, 7)) == "c");
}

TEST_CASE("add replaces the row with the same key, in its place") {
  TuningTable table;
  table.add(row("a", {{"m", "4"}}));
  table.add(row("other", {{"m", "5"}}));
  table.add(row("other count", {{"m", "4"}}, 132));
  table.add(row("b", {{"m", "4"}}));
  REQUIRE(table.rows().size() == 3);
  CHECK(table.rows()[0].variant == "b");
}

TEST_CASE("add refuses what parse would skip, with the same sentence, and keeps the table") {
  const TableRow good = parse_good(k_row).rows()[0];
  const auto changed = [&](const std::function<void(TableRow&)>& change) {
    TableRow bad = good;
    change(bad);
    return bad;
  };
  constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<TableRow, const char*> cases[] = {
      {changed([](TableRow& r) { r.measured->us = 9.4; }), "9.4 us is not 5 % faster than 9.8 us of"},
      {changed([](TableRow& r) { r.measured->us = k_nan; }), "'us' is null; give a time above zero"},
      {changed([](TableRow& r) { r.measured->us = -1; }), "'us' is -1.0; give a time above zero"},
      {changed([](TableRow& r) { r.measured->replaced_us = k_nan; }), "'replaced_us' is null"},
      {changed([](TableRow& r) { r.measured->replaced_us = std::numeric_limits<double>::infinity(); }),
       "'replaced_us' is null"},
      {changed([](TableRow& r) { r.measured->rounds_overlap = true; }), "the rounds overlap"},
      {changed([](TableRow& r) { r.measured->rounds = 0; }), "'rounds' is 0; give an integer from 1"},
      {changed([](TableRow& r) { r.measured.reset(); }), "the row has no 'measured'"},
      {changed([](TableRow& r) { r.op.clear(); }), "'op' is \"\"; give a string"},
      {changed([](TableRow& r) { r.multiprocessors = 0; }), "'multiprocessors' is 0"},
      {changed([](TableRow& r) {
         r.when["m"] = Range{2, 1};
       }),
       "\"m\" is [2,1]; a range is two integers"},
      {changed([](TableRow& r) { r.variant = std::string(70'000, 'x'); }), "bytes; a row has at most 65536"},
  };
  TuningTable table = parse_good(k_row);
  for (const auto& [bad, says] : cases) {
    CHECK_THROWS_WITH_AS(table.add(bad), doctest::Contains(says), InvalidRequest);
    CHECK(table.text() == parse_good(k_row).text());
  }
}

TEST_CASE("a file is written whole and read back") {
  const test::TempDir dir;
  const std::string file = dir / "t.jsonl";
  const TuningTable table = parse_good(k_row);
  std::ofstream(file) << "old content that is longer than the table " << std::string(2'000, 'x');
  table.write(file);
  std::vector<std::string> problems;
  CHECK(TuningTable::read(file, problems).text() == table.text());
  CHECK(problems.empty());
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("a failed write leaves nothing behind") {
  const test::TempDir dir;
  std::filesystem::create_directory(dir / "taken");  // a rename can't replace it
  CHECK_THROWS_AS(parse_good(k_row).write(dir / "taken"), InvalidRequest);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  CHECK_THROWS_WITH_AS(parse_good(k_row).write(dir / "absent/t"), doctest::Contains("No such file"),
                       InvalidRequest);
}

TEST_CASE("a file that can't be read is one problem") {
  const test::TempDir dir;
  std::ofstream(dir / "huge").seekp(17 << 20).put('x');
  for (const auto& [file, says] :
       {std::pair{dir / "absent", "No such file"}, std::pair{dir / "", "no regular file"},
        std::pair{dir / "huge", "more than 16777216 bytes"}}) {
    std::vector<std::string> problems;
    CHECK(TuningTable::read(file, problems).rows().empty());
    REQUIRE(problems.size() == 1);
    CHECK_MESSAGE(problems[0].find(says) != std::string::npos, problems[0]);
  }
}

TEST_CASE("damaged text is a problem or another table, never more") {
  std::minstd_rand random(1);
  const std::string good = k_row + "\n" + k_row + "\n";
  for (int i = 0; i < 5'000; ++i) {
    std::string text = good;
    for (auto flips = random() % 3; flips > 0; --flips)
      text[random() % text.size()] ^= static_cast<char>(1u << random() % 8);
    if (random() % 2 == 0) text.resize(random() % text.size());
    std::vector<std::string> problems;
    const TuningTable table = TuningTable::parse(text, "t", problems);
    std::vector<std::string> none;
    CHECK(TuningTable::parse(table.text(), "t", none).text() == table.text());
    CHECK(none.empty());
    for (const std::string& problem : problems) CHECK(problem.size() < 300);
  }
}

TEST_SUITE_END();

}  // namespace jitsmith
