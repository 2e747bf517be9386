// jitsmith run, warm and the cache: kernels compiled by the host compiler, outputs against the reference. One
// compile takes a second: cases that do not look at the cache share one and two kernels.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>
#include <jitsmith/tools/npy.hpp>

#include "tool_process.hpp"

using namespace jitsmith;
using namespace jitsmith::test;
using Json = nlohmann::json;

namespace {

const std::string k_shared_cache = JITSMITH_TEST_BINARY_DIR "/tool-cache";
const std::string k_any_shape = "variant=simt:threads=64,tile_m=1,tile_n=1,unroll=1,vector=false";

// Random inputs of a request as files, and the command line that runs it.
class RunCase {
 public:
  explicit RunCase(const Params& request) : op_(skinny_gemm_op(TemplateFiles())) {
    inputs_ = op_.arrays->make_inputs(op_.request.complete(request, op_.name), 7);
    for (const auto& [name, array] : inputs_) write_npy(folder_ / (name + ".npy"), array);
  }

  std::string file(const std::string& name) const { return folder_ / (name + ".npy"); }
  std::string out() const { return folder_ / "out"; }
  bool wrote() const { return std::filesystem::exists(out()); }
  Array y() const { return read_npy(out() + "/y.npy"); }

  std::vector<std::string> args(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"run", "skinny_gemm", "--target", "host", "--out", out()};
    for (const auto& item : inputs_) all.insert(all.end(), {"--in", item.first + "=" + file(item.first)});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  CheckResult check() const {
    const auto optional = [this](const char* name) {
      return inputs_.contains(name) ? &inputs_.find(name)->second : nullptr;
    };
    return check_skinny_gemm({inputs_.at("x"), inputs_.at("w"), optional("bias"), optional("residual")}, y());
  }

  const TempDir& folder() const { return folder_; }

 private:
  TempDir folder_;
  Op op_;
  Arrays inputs_;
};

Params request(std::int64_t m, std::int64_t n, std::int64_t k, std::vector<Params::Item> more = {}) {
  Params params{{"m", m}, {"n", n}, {"k", k}, {"aligned", k % 8 == 0}};
  for (const auto& [name, value] : more) params.set(name, value);
  return params;
}

}  // namespace

TEST_SUITE_BEGIN("jitsmith run");

TEST_CASE("outputs are what the reference says") {
  const std::vector<Params::Item> bias_f32{{"bias", std::string("f32")}},
      bias_bf16{{"bias", std::string("bf16")}};
  const std::vector<Params::Item> both{{"bias", std::string("f32")}, {"residual", true}};
  const std::vector<Params::Item> fp32{
      {"out", ElementType::f32}, {"bias", std::string("bf16")}, {"residual", true}};
  const Params requests[] = {request(1, 1, 1),          request(3, 5, 64, bias_bf16),
                             request(4, 16, 128, both), request(2, 7, 13, both),
                             request(5, 3, 1000, fp32), request(2, 4, 0, bias_f32),
                             request(32, 2, 9)};
  const Tool tool(k_shared_cache);
  for (const Params& params : requests) {
    CAPTURE(to_string(params));
    const RunCase run(params);
    const bool is_f32 = params.find("out") != nullptr;
    const ToolResult result =
        tool(run.args({"--set", k_any_shape, "--set", is_f32 ? "out=f32" : "out=bf16", "--check"}));
    CHECK_MESSAGE(result.status == 0, result.err);
    CHECK(has(result.out, "check     passed"));
    REQUIRE(run.wrote());
    CHECK(run.y().shape == std::vector{params.integer("m"), params.integer("n")});
    const CheckResult check = run.check();
    CHECK_MESSAGE(check.passed, check.summary);
  }
}

TEST_CASE("a row without the forced choice is right too") {
  const RunCase run(request(4, 16, 64));
  const ToolResult result = Tool(k_shared_cache)(run.args({"--check"}));
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(run.check().passed);
}

TEST_CASE("an empty output is written and needs no kernel") {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{0, 5}, {3, 0}, {0, 0}}) {
    const RunCase run(request(m, n, 8));
    const ToolResult result =
        Tool(k_shared_cache).set("JITSMITH_HOST_CXX", "/nonexistent")(run.args({"--check"}));
    CHECK_MESSAGE(result.status == 0, result.err);
    CHECK(run.y().shape == std::vector{m, n});
  }
}

TEST_CASE("a declined request writes nothing") {
  const RunCase run(request(33, 2, 8));
  const ToolResult result = Tool(k_shared_cache)(run.args({}));
  CHECK(result.status == 2);
  CHECK(result.err ==
        "jitsmith: declined: skinny_gemm serves m up to 32, and m is 33; split the rows or keep your own "
        "kernel\n");
  CHECK(!run.wrote());
}

TEST_CASE("a wrong request is refused in one sentence and writes nothing") {
  const RunCase run(request(2, 4, 16));
  const TempDir& folder = run.folder();
  write_npy(folder / "f32.npy", Array::zeros(ElementType::f32, {2, 16}));
  write_npy(folder / "i32.npy", Array::zeros(ElementType::i32, {2, 16}));
  write_npy(folder / "vector.npy", Array::zeros(ElementType::bf16, {16}));
  write_npy(folder / "narrow.npy", Array::zeros(ElementType::bf16, {4, 15}));
  const auto w = "w=" + run.file("w");
  const auto input = [&](const char* x, const std::string& file) {
    return std::vector<std::string>{
        "run", "skinny_gemm", "--target", "host", "--in", x + ("=" + file), "--in", w, "--out", run.out()};
  };
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {input("x", folder / "i32.npy"), "x is i32 [2, 16]"},
      {input("x", folder / "f32.npy"), "x_format is f32"},
      {input("x", folder / "vector.npy"), "x is bf16 [16]"},
      {input("x", folder / "narrow.npy"), "w is bf16 [4, 16]; give [N, 15]"},
      {input("x", "/nonexistent.npy"), "/nonexistent.npy"},
      {input("z", run.file("x")), "skinny_gemm has no input 'z'; it has x, w, bias, residual"},
      {input("w", run.file("w")), "--in w is given twice"},
      {{"run", "skinny_gemm", "--in", w, "--out", run.out()}, "skinny_gemm needs the input 'x'"},
      {run.args({"--in", "bias"}), "--in 'bias' is not of the form name=value"},
      {run.args({"--in", "bias=" + run.file("x")}), "bias is bf16 [2, 16]"},
      {run.args({"--set", "bias=f32"}), "bias=f32 was set but the arrays say none"},
      {run.args({"--set", "residual=true"}), "residual=true was set but the arrays say false"},
      {run.args({"--set", "w_format=mxfp8"}), "w_format=mxfp8 was set but the arrays say bf16"},
      {run.args({"--in", "residual=" + run.file("x")}), "residual is bf16 [2, 16]"},
      {run.args({"--set", "m=3"}), "m=3 was set but the arrays say 2"},
      {run.args({"--set", "speed=high"}), "skinny_gemm has no parameter 'speed'"},
      {run.args({"--set", "out=i32"}), "out=i32 is not allowed"},
      {run.args({"--set", "variant=tensor"}), "no variant 'tensor'"},
      {run.args({"--set", "variant=simt:warps=4"}), "no parameter 'warps'"},
      {run.args({"--set", "variant=simt:threads=100"}), "threads=100 is not allowed"},
      {run.args({"--set", "variant=simt", "--set", "variant=simt"}), "--set variant is given twice"},
      {run.args({"--set", "batch_invariant=true", "--set", k_any_shape}),
       "batch_invariant needs threads=128"},
  };
  for (const auto& [args, sentence] : cases) {
    const ToolResult result = Tool(k_shared_cache)(args);
    CHECK(result.status == 2);
    CHECK_MESSAGE(has(result.err, sentence), result.err);
    CHECK(std::ranges::count(result.err, '\n') == 1);
    CHECK(!run.wrote());
  }
  const ToolResult unknown =
      Tool(k_shared_cache)({"run", "nonsense", "--out", run.out(), "--target", "host"});
  CHECK(unknown.status == 2);
  CHECK(has(unknown.err, "there is no op 'nonsense'"));
}

TEST_CASE("an output folder that can't be made is named") {
  const RunCase run(request(0, 4, 16));
  std::vector<std::string> args = run.args({});
  *std::ranges::find(args, run.out()) = run.file("x");
  const ToolResult result = Tool(k_shared_cache)(args);
  CHECK(result.status == 2);
  CHECK(has(result.err, run.file("x")));
}

TEST_CASE("a missing host compiler is a failure that writes nothing") {
  const RunCase run(request(2, 4, 16));
  const ToolResult result = Tool(k_shared_cache).set("JITSMITH_HOST_CXX", "/nonexistent")(run.args({}));
  CHECK(result.status == 1);
  CHECK(has(result.err, "/nonexistent"));
  CHECK(!run.wrote());
}

TEST_CASE("a cache that can't be used costs a warning and no result") {
  const RunCase run(request(1, 2, 16));
  const ToolResult result = Tool("/dev/null/cache")(run.args({"--set", k_any_shape}));
  CHECK(result.status == 0);
  CHECK(has(result.err, "jitsmith: warning: "));
  CHECK(has(result.out, "compiled in"));
  CHECK(run.check().passed);
}

TEST_CASE("a warmed cache serves, is listed, and can be emptied") {
  const TempDir folder;
  const Tool tool(folder / "cache");
  {
    std::ofstream file(folder / "requests.json");
    file << R"({"name": "two", "requests": [{"op": "skinny_gemm", "m": [1, 0, 33], "n": 4, "k": [16, 24]}]})";
  }
  const auto dry = Json::parse(
      tool({"warm", "--from", folder / "requests.json", "--arch", "host", "--dry-run", "--json"}).out);
  CHECK(dry["missing"] == 1);
  CHECK(dry["requests_without_kernel"] == 4);

  const ToolResult first = tool({"warm", "--from", folder / "requests.json", "--arch", "host"});
  CHECK_MESSAGE(first.status == 0, first.err);
  CHECK(has(first.out, "[1/1] compiled host skinny_gemm simt:"));
  CHECK(has(first.out,
            "1 kernel: 0 already cached, 1 compiled, 0 missing, 0 failed; 4 requests without a kernel"));
  const ToolResult second =
      tool({"warm", "skinny_gemm", "--set", "m=1", "--set", "n=4", "--set", "k=16", "--arch", "host"});
  CHECK(has(second.out, "1 already cached, 0 compiled"));

  const RunCase run(request(1, 4, 16));
  CHECK(has(tool(run.args({})).out, "from the cache in"));
  CHECK(run.check().passed);

  CHECK(Json::parse(tool({"cache", "stat", "--json"}).out)["entries"] == 1);
  const Json entries = Json::parse(tool({"cache", "list", "--json"}).out);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0]["template"] == "skinny_gemm/simt.cu");
  CHECK(entries[0]["target"] == "host host");
  CHECK(has(entries[0]["instantiation"].get<std::string>(), "jitsmith::skinny_gemm_simt<"));
  CHECK(has(tool({"cache", "list"}).out, "skinny_gemm/simt.cu jitsmith::skinny_gemm_simt<"));
  CHECK(has(tool({"cache", "clear"}).out, "removed 1 file, "));
  CHECK(Json::parse(tool({"cache", "stat", "--json"}).out)["entries"] == 0);
}

TEST_CASE("demo runs every op and checks it") {
  const ToolResult result = Tool(k_shared_cache)({"demo", "--target", "host"});
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(has(result.out, "skinny_gemm"));
  CHECK(has(result.out, "passed"));
}

TEST_SUITE_END();
