// What an engine records, how it survives faults, and how it is read back.
#include <jitsmith/runtime/recording.hpp>

#include <algorithm>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/recorder.hpp>

#include "support/engine_options.hpp"
#include "support/faulty_file_system.hpp"
#include "support/kernel_cache.hpp"
#include "support/message_of.hpp"
#include "support/offset_op.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace test;

constexpr std::string_view k_line =
    R"({"op":"skinny_gemm","arch":"sm_90a","variant":"simt","params":{"threads":128,"vector":true,"out":"bf16"},)"
    R"("request":{"n":2112,"m":1}})"
    "\n";

Recording read(const std::string& file) {
  std::vector<std::string> problems;
  Recording recording = Recording::read(file, problems);
  for (const std::string& problem : problems) FAIL_CHECK(problem);
  return recording;
}

// Records a kernel that nobody else records.
void record(Recorder& recorder, std::int64_t number, std::size_t length = 1) {
  const Params request{{"text", std::string(length, 'x')}};
  recorder.record("op", "host", "plain", {{"number", number}}, &request);
}

std::string problem_of(std::string_view line) {
  std::vector<std::string> problems;
  CHECK(Recording::parse(line, "r", problems).lines.empty());
  REQUIRE(problems.size() == 1);
  return problems[0];
}

}  // namespace

TEST_SUITE_BEGIN("Recording");

TEST_CASE("A recording is printed as it was read, in the order of its keys and parameters") {
  std::vector<std::string> problems;
  const Recording recording = Recording::parse(k_line, "r", problems);
  CHECK(problems.empty());
  REQUIRE(recording.lines.size() == 1);
  const KernelRecord& record = recording.lines[0].record;
  CHECK(record.arch == "sm_90a");
  CHECK(record.params == NamedTexts{{"threads", "128"}, {"vector", "true"}, {"out", "bf16"}});
  CHECK(record.request == NamedTexts{{"n", "2112"}, {"m", "1"}});
  CHECK(recording.text() == k_line);
}

TEST_CASE("A bad line of a recording is skipped and named, an equal one dropped") {
  std::vector<std::string> problems;
  const std::string text = std::string(k_line) + "{\"op\":\"skin\"}\n\n" + std::string(k_line) +
                           R"({"variant":"v","params":{},"arch":"host","op":"o"})";
  const Recording recording = Recording::parse(text, "file", problems);
  REQUIRE(recording.lines.size() == 2);
  CHECK(recording.lines[0].number == 1);
  CHECK(recording.lines[1].number == 5);
  CHECK(!recording.lines[1].record.request);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] == "file:2: 'arch' is missing; give it");
  CHECK(recording.torn_lines == 0);
}

TEST_CASE("Lines that a crash tore are counted, wherever they end and whatever is glued to them") {
  const std::string whole(k_line.substr(0, k_line.size() - 1));
  for (std::size_t length = 1; length < whole.size(); ++length) {
    CAPTURE(whole.substr(0, length));
    const std::string half = whole.substr(0, length);
    std::vector<std::string> problems;
    const Recording recording =
        Recording::parse("\n" + half + "\n" + half + whole + "\n" + whole + "\n" + half, "r", problems);
    CHECK(problems.empty());
    CHECK(recording.torn_lines == 3);
    CHECK(recording.first_torn_line == 2);
    REQUIRE(recording.lines.size() == 1);
    CHECK(recording.lines[0].number == 4);
  }
  std::vector<std::string> problems;  // a block that a power cut left zero is longer than any record
  CHECK(Recording::parse(std::string(100'000, '\0') + "\n", "r", problems).torn_lines == 1);
  CHECK(problems.empty());
}

TEST_CASE("What a record is of no use for is told among the other problems, in the order of the file") {
  std::vector<std::string> problems;
  const std::string record = R"({"op":"o","arch":"a","variant":"v","params":{}})";
  const auto refuse = [](const KernelRecord& read) {
    if (read.op == "o") throw InvalidRequest("it is no use");
  };
  const Recording recording =
      Recording::parse("7\n" + record + "\n8\n" + std::string(k_line), "r", problems, refuse);
  CHECK(recording.lines.size() == 1);
  REQUIRE(problems.size() == 3);
  CHECK(contains(problems[0], "r:1: "));
  CHECK(problems[1] == "r:2: it is no use");
  CHECK(contains(problems[2], "r:3: "));
}

TEST_CASE("Each way for a line of a recording to be bad has its sentence") {
  CHECK(contains(problem_of("7"), "r:1: the record is 7; give an object"));
  CHECK(contains(problem_of(R"({"op":"o","arch":"a","variant":"v"})"), "'params' is missing"));
  CHECK(contains(problem_of(R"({"op":"","arch":"a","variant":"v","params":{}})"), "'op' is \"\""));
  CHECK(contains(problem_of(R"({"op":"o","arch":"a","variant":"v","params":[]})"), "'params' is []"));
  CHECK(contains(problem_of(R"({"op":"o","arch":"a","variant":"v","params":{"x":1.5}})"), "\"x\" is 1.5"));
  CHECK(
      contains(problem_of(R"({"op":"o","arch":"a","variant":"v","params":{"x":{"y":1}}})"), "deeper than 2"));
  CHECK(contains(problem_of(R"({"op":"o","op":"o"})"), "twice"));
  CHECK(contains(problem_of(R"({"op":"o","when":1})"), "\"when\" is unknown"));
  CHECK(contains(problem_of(std::string(70'000, ' ') + "{}"), "has 70002 bytes"));
  std::string keys;
  for (int i = 0; i < 65; ++i) keys += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  CHECK(contains(problem_of("{\"params\":{" + keys + "}}"), "more than 64 keys"));
  std::vector<std::string> problems;
  CHECK(contains(message_of<InvalidRequest>([&] { Recording::read("/nonexistent", problems); }),
                 "/nonexistent: the recording can't be read: No such file"));
}

TEST_CASE("An engine records each request that needs a kernel once, whether it was cached or not") {
  const TempDir folder;
  Options options = host_options(kernel_cache());
  options.record = folder / "recording";
  Engine engine(options);
  engine.add(offset_op());
  CHECK(!std::filesystem::exists(options.record));  // opened when there is something to say
  engine.plan(offset_request(5));
  engine.plan(offset_request(7));  // the same kernel here, but not everywhere
  engine.plan(offset_request(7));
  engine.plan(offset_request(0));     // nothing to run
  engine.plan(offset_request(2000));  // declined
  engine.plan(Offset{.n = 5});
  REQUIRE(read(options.record).lines.size() == 2);
  const KernelRecord record = read(options.record).lines[0].record;
  CHECK(record == KernelRecord{.op = "offset",
                               .arch = "host",
                               .variant = "plain",
                               .params = {{"threads", "64"}},
                               .request = NamedTexts{{"n", "5"}}});

  const Variant& variant = engine.op("offset").variants[0];
  engine.warm(variant, offset_params(128), host_target());
  engine.warm(variant, offset_params(128), host_target());
  REQUIRE(read(options.record).lines.size() == 3);
  CHECK(!read(options.record).lines[2].record.request);

  Engine another(options);
  another.add(offset_op());
  another.warm(offset_request(5), device_profile("host"));  // as after a restart
  CHECK(std::ranges::count(bytes_of(options.record), '\n') == 3);
  another.warm(offset_request(6), device_profile("host"));
  CHECK(std::ranges::count(bytes_of(options.record), '\n') == 4);
  CHECK(read(options.record).lines.size() == 4);
}

TEST_CASE("What may not be compiled is recorded all the same") {
  const TempDir folder;
  Options options = host_options(folder / "cache");
  options.record = folder / "recording";
  options.policy = Policy::cached_only;
  Engine engine(options);
  engine.add(offset_op());
  CHECK_THROWS_AS(engine.plan(offset_request(5)), NotCached);
  CHECK_THROWS_AS(engine.plan(offset_request(6)), NotCached);
  CHECK(read(options.record).lines.size() == 2);
  options.record = folder / "without-compiler";
  options.host_compiler.compiler = "/nonexistent/c++";
  Engine without(options);
  without.add(offset_op());
  CHECK_THROWS_AS(without.warm(offset_request(5), device_profile("host")), NotCached);
  CHECK(read(options.record).lines.size() == 1);
}

TEST_CASE("A recording that fails fails no plan, and says so once") {
  Events events;
  Options options = host_options(kernel_cache());
  options.record = "/nonexistent/recording";
  options.events = events.sink();
  Engine engine(options);
  engine.add(offset_op());
  CHECK(engine.plan(offset_request(5)));
  engine.warm(engine.op("offset").variants[0], offset_params(128), host_target());
  CHECK(events.count("record.failed") == 1);
  CHECK(contains(events.text("record.failed"), "recording to /nonexistent/recording failed"));
  CHECK(contains(events.text("record.failed"),
                 "No such file or directory; make the folder or name another file by JITSMITH_RECORD"));
}

TEST_CASE("Many processes that record at once tear no line [process]") {
  constexpr int k_processes = 8, k_records = 150;
  const TempDir folder;
  const std::string file = folder / "recording";
  std::vector<pid_t> children;
  for (int process = 0; process < k_processes; ++process) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Recorder recorder(real_file_system(), file, {});
      for (int i = 0; i < k_records; ++i)
        record(recorder, process * k_records + i, static_cast<std::size_t>(1 + i * 20));
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(read(file).lines.size() == k_processes * k_records);
}

TEST_CASE("A forked child goes on with its parent's recording [process]") {
  const TempDir folder;
  Recorder recorder(real_file_system(), folder / "recording", {});
  record(recorder, 1);
  const pid_t child = fork();
  if (child == 0) {
    record(recorder, 1);
    record(recorder, 2);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  record(recorder, 3);
  CHECK(read(folder / "recording").lines.size() == 3);
}

TEST_CASE("Threads that record at once lose nothing [tsan]") {
  const TempDir folder;
  Recorder recorder(real_file_system(), folder / "recording", {});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) record(recorder, i);
      });
  }
  CHECK(read(folder / "recording").lines.size() == 50);
  CHECK(std::ranges::count(bytes_of(folder / "recording"), '\n') == 50);
}

TEST_CASE("Half a line that a killed process left is ended before the next one") {
  const TempDir folder;
  const std::string file = folder / "recording";
  std::ofstream(file) << k_line << k_line.substr(0, 50);
  Recorder recorder(real_file_system(), file, {});
  record(recorder, 1);
  std::ofstream(file, std::ios::app) << k_line.substr(0, 20);  // another process, meanwhile
  record(recorder, 2);
  std::vector<std::string> problems;
  const Recording recording = Recording::read(file, problems);
  CHECK(recording.lines.size() == 3);
  CHECK(recording.torn_lines == 2);
  CHECK(recording.first_torn_line == 2);
  CHECK(problems.empty());
}

TEST_CASE("A disk that is full turns recording off with one warning, and what it tore heals [fault]") {
  const TempDir folder;
  const std::string file = folder / "recording";
  FaultyFileSystem disk;
  Events events;
  {
    Recorder recorder(disk, file, events.sink());
    record(recorder, 1);
    disk.transfer_at_most(10);
    disk.fail(Call::write, 3, ENOSPC);
    record(recorder, 2);
    CHECK(bytes_of(file).back() != '\n');
    record(recorder, 3);
    CHECK(disk.count(Call::write) == 4);  // nothing is tried after the failure
    CHECK(disk.count(Call::close) == 1);
  }
  CHECK(events.count("record.failed") == 1);
  CHECK(contains(events.text("record.failed"),
                 "No space left on device; make room there or name another file by JITSMITH_RECORD"));

  disk.forget();
  Recorder next(disk, file, events.sink());
  record(next, 4);  // in pieces of 10 bytes, and whole
  std::vector<std::string> problems;
  const Recording recording = Recording::read(file, problems);
  REQUIRE(recording.lines.size() == 2);
  CHECK(recording.lines[1].record.params[0].second == "4");
  CHECK(recording.torn_lines == 1);
  CHECK(problems.empty());
}

TEST_CASE("Whatever call fails, recording is off and nothing else happens [fault]") {
  for (const Call call : {Call::open, Call::stat, Call::read, Call::write}) {
    const TempDir folder;
    std::ofstream(folder / "recording") << k_line;
    FaultyFileSystem disk;
    Events events;
    Recorder recorder(disk, folder / "recording", events.sink());
    disk.fail(call, 1, EIO);
    record(recorder, 1);
    record(recorder, 2);
    CHECK(events.count("record.failed") == 1);
    CHECK(
        contains(events.text("record.failed"), ": Input/output error; name another file by JITSMITH_RECORD"));
    CHECK(bytes_of(folder / "recording") == k_line);
  }
}

TEST_CASE("A limit on the size of files is kept, for going over it would kill [fault]") {
  const TempDir folder;
  FaultyFileSystem disk;
  Events events;
  disk.limit_file_size(100);
  Recorder recorder(disk, folder / "recording", events.sink());
  record(recorder, 1, 200);
  CHECK(disk.count(Call::write) == 0);
  CHECK(contains(events.text("record.failed"), "File too large; raise the limit on the size of files"));
}

TEST_CASE("A sink may come back to the engine when recording fails") {
  const TempDir folder;
  Options options = host_options(kernel_cache());
  options.record = "/nonexistent/recording";
  Engine* engine = nullptr;
  int told = 0;
  options.events = [&](const Event& event) {
    if (event.what != "record.failed") return;
    ++told;
    engine->warm(engine->op("offset").variants[0], offset_params(64), host_target());
  };
  Engine the_engine(options);
  engine = &the_engine;
  the_engine.add(offset_op());
  CHECK(the_engine.plan(offset_request(5)));
  CHECK(told == 1);
}

TEST_CASE("A recording ends where a reader would refuse it [fault]") {
  const TempDir folder;
  std::ofstream(folder / "recording").close();
  std::filesystem::resize_file(folder / "recording", k_max_recording_bytes - 100);
  Events events;
  Recorder recorder(real_file_system(), folder / "recording", events.sink());
  record(recorder, 1, 200);
  CHECK(std::filesystem::file_size(folder / "recording") == k_max_recording_bytes - 100);
  CHECK(contains(events.text("record.failed"),
                 "it would have more than 64 MiB, which is the most that is read; name another file by"));
}

TEST_CASE("A recording goes to a regular file only, and waits for no reader") {
  const TempDir folder;
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  Events events;
  Recorder recorder(real_file_system(), folder / "fifo", events.sink());
  record(recorder, 1);
  CHECK(contains(events.text("record.failed"), "it is no regular file"));
}

TEST_CASE("A sink that throws does not reach the plan") {
  Recorder recorder(real_file_system(), "/nonexistent/recording",
                    [](const Event&) { throw std::runtime_error("no"); });
  record(recorder, 1);
}

TEST_SUITE_END();

}  // namespace jitsmith
