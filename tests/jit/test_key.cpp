#include <jitsmith/jit/key.hpp>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/jit/child_process.hpp>
#include <jitsmith/jit/specialize.hpp>

#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using test::TempDir;

// Everything that a key is made of.
struct Inputs {
  KernelTemplate kernel{.path = "mine/k.cu",
                        .source = "#include \"a.h\"\n#include \"b.h\"\nint k;\n",
                        .function = "mine::k",
                        .schema = Schema()
                                      .integer("threads", {}, "")
                                      .boolean("vector", "")
                                      .choice("order", {"rows", "columns"}, "", std::nullopt, "Order")
                                      .type("out", {ElementType::bf16, ElementType::f32}, ""),
                        .headers = {{"a.h", "int a;\n"}, {"b.h", "int b;\n"}}};
  Params params{{"threads", std::int64_t{160}},
                {"vector", true},
                {"order", std::string("rows")},
                {"out", ElementType::bf16}};
  Target target{Executor::cuda, "sm_90a"};
  std::string toolchain = "nvrtc build-id=12 builtins=34";
  std::vector<std::string> options{"--gpu-architecture=sm_90a", "--fmad=false"};

  SpecializedSource source() const {
    return specialize(kernel, params, include_closure(kernel, TemplateFiles()));
  }
  Key key() const { return key(source()); }
  Key key(const SpecializedSource& from) const {
    return make_key(kernel, params, from, target, toolchain, options);
  }
};

std::string changed(std::string text, std::size_t at, char byte) {
  text[at] = byte;
  return text;
}

std::string changed_key(const std::function<void(Inputs&)>& change) {
  Inputs inputs;
  change(inputs);
  return inputs.key().text;
}

}  // namespace

TEST_SUITE_BEGIN("Key");

TEST_CASE("A key is this text") {
  CHECK(Inputs().key().text ==
        "format[1]=1\n"
        "template[9]=mine/k.cu\n"
        "function[7]=mine::k\n"
        "parameter.threads[7]=int 160\n"
        "parameter.vector[9]=bool true\n"
        "parameter.order[11]=choice rows\n"
        "parameter.out[9]=type bf16\n"
        "source[41]=3651155d3d86074f49b78ae7db762162 37 bytes\n"
        "header.a.h[40]=e767b76c0d15d34cdeb239232b04e4df 7 bytes\n"
        "header.b.h[40]=a60eff42c64e5fc5072496296ee7704d 7 bytes\n"
        "instantiation[47]=mine::k<160, true, Order::rows, jitsmith::bf16>\n"
        "target[11]=cuda sm_90a\n"
        "option.0[25]=--gpu-architecture=sm_90a\n"
        "option.1[12]=--fmad=false\n"
        "toolchain[29]=nvrtc build-id=12 builtins=34\n");
}

TEST_CASE("The digest is that of the text") {
  const Key key = Inputs().key();
  CHECK(key.digest == digest_of(key.text));
  CHECK(key.text == Inputs().key().text);
}

TEST_CASE("F8: Each of 20 changes of one input changes the key, and all keys differ") {
  const std::vector<std::pair<const char*, std::function<void(Inputs&)>>> changes{
      {"integer parameter", [](Inputs& i) { i.params.set("threads", std::int64_t{128}); }},
      {"boolean parameter", [](Inputs& i) { i.params.set("vector", false); }},
      {"choice parameter", [](Inputs& i) { i.params.set("order", std::string("columns")); }},
      {"type parameter", [](Inputs& i) { i.params.set("out", ElementType::f32); }},
      {"one more parameter",
       [](Inputs& i) {
         i.kernel.schema.integer("extra", {}, "");
         i.params.set("extra", std::int64_t{1});
       }},
      {"option value", [](Inputs& i) { i.options[1] = "--fmad=true"; }},
      {"other option value", [](Inputs& i) { i.options[0] += "x"; }},
      {"one more option", [](Inputs& i) { i.options.emplace_back("-lineinfo"); }},
      {"one option less", [](Inputs& i) { i.options.pop_back(); }},
      {"order of options", [](Inputs& i) { std::ranges::reverse(i.options); }},
      {"an empty option", [](Inputs& i) { i.options.emplace_back(""); }},
      {"architecture", [](Inputs& i) { i.target.arch = "sm_90"; }},
      {"executor", [](Inputs& i) { i.target.executor = Executor::host; }},
      {"template path", [](Inputs& i) { i.kernel.path = "mine/l.cu"; }},
      {"function", [](Inputs& i) { i.kernel.function = "mine::l"; }},
      {"template byte",
       [](Inputs& i) { i.kernel.source = changed(i.kernel.source, i.kernel.source.str().size() - 1, ' '); }},
      {"template length", [](Inputs& i) { i.kernel.source = i.kernel.source.str() + '\n'; }},
      {"header byte",
       [](Inputs& i) { i.kernel.headers[0].text = changed(i.kernel.headers[0].text, 4, 'x'); }},
      {"other header byte",
       [](Inputs& i) { i.kernel.headers[1].text = changed(i.kernel.headers[1].text, 4, 'x'); }},
      {"toolchain", [](Inputs& i) { i.toolchain = "nvrtc build-id=12 builtins=35"; }},
  };
  std::set<std::string> texts{Inputs().key().text};
  std::set<std::string> digests{Inputs().key().digest.hex()};
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    CHECK(texts.insert(changed_key(change)).second);
    Inputs inputs;
    change(inputs);
    CHECK(digests.insert(inputs.key().digest.hex()).second);
  }
  CHECK(digests.size() == 21);
}

TEST_CASE("The name of a header and the instantiation count by themselves") {
  SpecializedSource source = Inputs().source();
  const std::string before = Inputs().key(source).text;
  source.headers[0].path = "c.h";
  CHECK(Inputs().key(source).text != before);
  source = Inputs().source();
  source.instantiation += ' ';
  CHECK(Inputs().key(source).text != before);
}

TEST_CASE("F9: Texts that join alike stay apart") {
  Inputs one, two;
  one.options = {"-a", "-b"};
  two.options = {"-a-b"};
  CHECK(one.key().text != two.key().text);

  two.options = {"-a\noption.1[2]=-b"};
  CHECK(one.key().text != two.key().text);

  one = two = {};
  one.options = {"-a"};
  one.toolchain = "x";
  two.options = {};
  two.toolchain = "x";
  CHECK(one.key().text != two.key().text);

  // A value that goes on like the fields after it.
  const std::string text = Inputs().key().text;
  const std::size_t last = text.find("option.1");
  two = {};
  two.options.pop_back();
  two.options[0] += "\n" + text.substr(last, text.find("toolchain") - last - 1);
  CHECK(two.key().text != text);

  // Bytes that wander from one file to the next.
  one = two = {};
  one.kernel.headers = {{"a.h", "xy"}, {"b.h", ""}};
  two.kernel.headers = {{"a.h", "x"}, {"b.h", "y"}};
  CHECK(one.key().text != two.key().text);
}

// Random inputs made of the pieces of which keys are spelt, so that neighbours would run together if they
// could.
Inputs tangled_inputs(std::mt19937& random) {
  const auto piece = [&random] {
    constexpr const char* k_pieces[] = {"",  "a", "[1]=", "\n", "option.0", "]=", "toolchain[1]=a\n",
                                        "1", "=", "a["};
    std::string text;
    for (auto count = random() % 3; count > 0; --count) text += k_pieces[random() % std::size(k_pieces)];
    return text;
  };
  Inputs inputs;
  inputs.params = {};
  inputs.kernel.schema = Schema();
  for (auto count = random() % 3; count > 0; --count) inputs.params.set("p" + std::to_string(count), piece());
  inputs.kernel.path = piece();
  inputs.kernel.function = piece();
  inputs.target.arch = piece();
  inputs.toolchain = piece();
  inputs.options.clear();
  for (auto count = random() % 3; count > 0; --count) inputs.options.push_back(piece());
  return inputs;
}

// The inputs themselves, without a doubt about where one ends: texts by their length.
std::string identity_of(const Inputs& inputs) {
  std::string identity;
  const auto add = [&identity](const std::string& text) {
    identity += fmt::format("{}:{};", text.size(), text);
  };
  identity += fmt::format("{};", inputs.params.items().size());
  for (const auto& [name, value] : inputs.params.items()) add(to_string(value));
  for (const auto* text :
       {&inputs.kernel.path, &inputs.kernel.function, &inputs.target.arch, &inputs.toolchain})
    add(*text);
  for (const std::string& option : inputs.options) add(option);
  return identity;
}

TEST_CASE("F9: Keys are equal exactly when what they are made of is") {
  std::mt19937 random(9);
  std::map<std::string, std::string> identity_by_key;
  std::set<std::string> identities;
  const SpecializedSource source{{"k.cu", "x"}, {}, "k"};
  for (int round = 0; round < 20'000; ++round) {
    const Inputs inputs = tangled_inputs(random);
    const std::string identity = identity_of(inputs);
    identities.insert(identity);
    const auto [place, fresh] = identity_by_key.emplace(inputs.key(source).text, identity);
    if (!fresh) CHECK(place->second == identity);
  }
  CHECK(identity_by_key.size() == identities.size());
  CHECK(identities.size() > 1000);
}

TEST_CASE("Values that print alike but differ in kind stay apart") {
  Inputs one, two;
  one.kernel.schema = two.kernel.schema = Schema();
  one.params = Params{{"a", std::string("true")}};
  two.params = Params{{"a", true}};
  CHECK(one.key().text != two.key().text);
}

TEST_CASE("The order in which headers are listed does not matter") {
  CHECK(changed_key([](Inputs& i) { std::ranges::reverse(i.kernel.headers); }) == Inputs().key().text);
}

TEST_CASE("A header that is not included does not matter") {
  CHECK(changed_key([](Inputs& i) {
          i.kernel.headers.push_back({"unused.h", "int u;\n"});
        }) == Inputs().key().text);
}

// Run by the next case in processes of their own.
TEST_CASE("print the key of another process" * doctest::skip()) {
  std::setlocale(LC_ALL, "");
  std::printf("key %s\n", Inputs().key().digest.hex().c_str());
}

TEST_CASE("F10: A key is the same in every process, whatever its locale, environment, folder and addresses") {
  const std::string program = std::filesystem::canonical("/proc/self/exe").string();
  const TempDir elsewhere;
  const auto key_in = [&](std::vector<std::string> environment, const std::string& directory,
                          std::vector<std::string> wrapper) {
    ChildProcess child{.environment = std::move(environment), .directory = directory};
    child.argv = std::move(wrapper);
    for (const char* argument : {program.c_str(), "--no-skip", "-tc=print the key of another process"})
      child.argv.emplace_back(argument);
    const std::string output = run_child(child).output;
    const std::size_t begin = output.find("key ");
    return begin == std::string::npos ? "no key in: " + output : output.substr(begin + 4, 32);
  };
  const std::string wanted = Inputs().key().digest.hex();
  const std::string path = "PATH=/usr/bin:/bin";
  CHECK(key_in({path}, "/", {}) == wanted);
  CHECK(key_in({path}, elsewhere.path().string(), {}) == wanted);  // and other addresses
  CHECK(key_in({path, "LC_ALL=de_DE.UTF-8", "LANG=tr_TR.UTF-8", "TZ=Asia/Tokyo"}, "/", {}) == wanted);
  CHECK(key_in({path, "HOME=" + elsewhere.path().string(), "TMPDIR=" + elsewhere.path().string(),
                "JITSMITH_CACHE=0", "CPATH=/nowhere", "NVRTC_APPEND_FLAGS=-lineinfo"},
               "/", {}) == wanted);
  if (std::filesystem::exists("/usr/bin/setarch"))
    CHECK(key_in({path}, "/", {"/usr/bin/setarch", "-R"}) == wanted);
}

TEST_CASE("Where the process runs does not matter") {
  const std::string before = Inputs().key().text;
  const std::filesystem::path here = std::filesystem::current_path();
  const char* home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  {
    const TempDir elsewhere;
    std::filesystem::current_path(elsewhere.path());
    ::setenv("HOME", elsewhere.path().c_str(), 1);
    // Groups digits and has a decimal comma, where it is installed.
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    const std::string there = Inputs().key().text;
    std::setlocale(LC_ALL, "C");
    std::filesystem::current_path(here);
    if (home != nullptr) ::setenv("HOME", old_home.c_str(), 1);
    CHECK(there == before);
  }
  CHECK(before.find(here.string()) == std::string::npos);
}

TEST_CASE("Template folders with equal text give equal keys, whatever their names") {
  const TempDir folders;
  Inputs inputs;
  inputs.kernel.source = "#include \"device/math.cuh\"\n";
  std::set<std::string> keys;
  for (const char* name : {"one", "a folder of another name"}) {
    const std::filesystem::path folder = folders.path() / name;
    std::filesystem::create_directories(folder);
    keys.insert(inputs
                    .key(specialize(inputs.kernel, inputs.params,
                                    include_closure(inputs.kernel, TemplateFiles(folder.string()))))
                    .text);
  }
  keys.insert(inputs.key().text);
  CHECK(keys.size() == 1);
}

TEST_SUITE_END();

}  // namespace jitsmith
