#include <jitsmith/jit/specialize.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using test::message_of;
using test::TempDir;

KernelTemplate kernel_with(std::string source, std::vector<SourceFile> headers = {}) {
  return {.path = "mine/k.cu",
          .source = std::move(source),
          .function = "mine::k",
          .schema = {},
          .headers = std::move(headers)};
}

SpecializedSource specialized(const KernelTemplate& kernel, const TemplateFiles& files = TemplateFiles()) {
  return specialize(kernel, {}, files);
}

std::vector<std::string> header_paths(const KernelTemplate& kernel) {
  std::vector<std::string> paths;
  for (const SourceFile& header : specialized(kernel).headers) paths.push_back(header.path);
  return paths;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("specialize");

TEST_CASE("The instantiation spells the parameters in schema order") {
  KernelTemplate kernel = kernel_with("");
  CHECK(specialized(kernel).instantiation == "mine::k");
  kernel.schema.integer("threads", {}, "").boolean("vector", "").type("out", {ElementType::bf16}, "");
  const Params params = kernel.schema.complete(
      Params{{"out", ElementType::bf16}, {"vector", false}, {"threads", std::int64_t{160}}}, "k");
  CHECK(specialize(kernel, params, TemplateFiles()).instantiation == "mine::k<160, false, jitsmith::bf16>");
}

TEST_CASE("The main file is the template's text under its own path") {
  const SpecializedSource source = specialized(kernel_with("int x;\n"));
  CHECK(source.main.path == "mine/k.cu");
  CHECK(source.main.text == "int x;\n");
  CHECK(source.headers.empty());
}

TEST_CASE("Headers are followed through headers, and sorted") {
  const KernelTemplate kernel =
      kernel_with("#include \"z.h\"\n#include \"b.h\"\n",
                  {{"z.h", "#include \"a.h\"\n"}, {"a.h", ""}, {"b.h", ""}, {"unused.h", ""}});
  CHECK(header_paths(kernel) == Paths{"a.h", "b.h", "z.h"});
}

TEST_CASE("A built-in header brings those it includes") {
  const Paths paths = header_paths(kernel_with("#include \"device/launch.cuh\"\n"));
  CHECK(std::ranges::find(paths, "device/launch.cuh") != paths.end());
  CHECK(std::ranges::find(paths, "device/prelude.cuh") != paths.end());
  CHECK(std::ranges::find(paths, "device/warp.cuh") == paths.end());
}

TEST_CASE("A cycle of headers ends") {
  CHECK(header_paths(kernel_with("#include \"a.h\"\n", {{"a.h", "#include \"b.h\"\n"},
                                                        {"b.h", "#include \"a.h\"\n#include \"b.h\"\n"}})) ==
        Paths{"a.h", "b.h"});
}

TEST_CASE("Every way to write a quoted include is seen, and no other line") {
  const KernelTemplate kernel = kernel_with(
      "  #  include   \"a.h\" // why\n\t#include\t\"b.h\"\r\n#include\"c.h\"\n#if 0\n#include "
      "\"d.h\"\n#endif\n"
      "// #include \"no1.h\"\nx #include \"no2.h\"\n#include <no3.h>\n#include "
      "\"unclosed\n#includes\n#include \"e.h\"",
      {{"a.h", ""}, {"b.h", ""}, {"c.h", ""}, {"d.h", ""}, {"e.h", ""}});
  CHECK(header_paths(kernel) == Paths{"a.h", "b.h", "c.h", "d.h", "e.h"});
}

TEST_CASE("A header that nothing answers is named, with the file that wants it") {
  CHECK(
      message_of<CompileError>([] {
        specialized(kernel_with("#include \"a.h\"\n", {{"a.h", "#include \"gone.h\"\n"}}));
      }) ==
      "a.h includes \"gone.h\", which is neither a header of the template nor a built-in one; add it to the "
      "template's headers");
  CHECK(message_of<CompileError>([] {
          specialized(kernel_with("#include \"gone.h\"\n"));
        }).starts_with("mine/k.cu includes"));
}

TEST_CASE("A template's own header shadows the built-in one of its name") {
  const SpecializedSource source =
      specialized(kernel_with("#include \"device/math.cuh\"\n", {{"device/math.cuh", "int mine;\n"}}));
  REQUIRE(source.headers.size() == 1);
  CHECK(source.headers[0].text == "int mine;\n");
}

TEST_CASE("An override folder replaces a file, and equal text there changes nothing") {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() / "device");
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "device/math.cuh", std::ios::binary) << text;
  };
  const TemplateFiles embedded, overridden(folder.path().string());
  const KernelTemplate kernel = kernel_with("#include \"device/math.cuh\"\n");
  const auto math_of = [&](const TemplateFiles& files) {
    for (const SourceFile& header : specialized(kernel, files).headers)
      if (header.path == "device/math.cuh") return header.text;
    return std::string();
  };

  write(*embedded.text("device/math.cuh"));
  const SpecializedSource same = specialized(kernel, overridden), plain = specialized(kernel, embedded);
  REQUIRE(same.headers.size() == plain.headers.size());
  for (std::size_t i = 0; i < same.headers.size(); ++i) {
    CHECK(same.headers[i].path == plain.headers[i].path);
    CHECK(same.headers[i].text == plain.headers[i].text);
  }

  write("int edited;\n");
  CHECK(math_of(overridden) == "int edited;\n");
  CHECK(math_of(embedded) != "int edited;\n");
}

TEST_CASE("Files that an override folder lacks come from the library") {
  const TempDir empty;
  CHECK(TemplateFiles(empty.path().string()).text("device/math.cuh") ==
        TemplateFiles().text("device/math.cuh"));
  CHECK_FALSE(TemplateFiles(empty.path().string()).text("device/nothing.cuh"));
}

TEST_SUITE_END();

}  // namespace jitsmith
