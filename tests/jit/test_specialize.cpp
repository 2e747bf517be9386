#include <jitsmith/jit/specialize.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/jit/embedded_templates.hpp>
#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"
#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using test::contains;
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
  return specialize(kernel, {}, include_closure(kernel, files));
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
  CHECK(specialize(kernel, params, include_closure(kernel, TemplateFiles())).instantiation ==
        "mine::k<160, false, jitsmith::bf16>");
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

TEST_CASE("Every way to write a quoted include is seen") {
  const std::vector<std::string> k_ways{
      "  #  include   \"a.h\" // why",
      "\t#include\t\"a.h\"\r\n",
      "#include\"a.h\"",
      "\xEF\xBB\xBF#include \"a.h\"",
      "#if 0\n#include \"a.h\"\n#endif",
      "#/**/include/* so */\"a.h\"/* and\nso */",
      "/* one\ntwo */ # /**/ include \"a.h\"",
      "#inc\\\nlude \"a.h\"",
      "# \\\r\n include \\\n\"a.\\\nh\"",
      "// no \\\nmore\n#include \"a.h\"",
      "/* /* */\n#include \"a.h\"",
      "/*/ */ #include \"a.h\"",
      "%:include \"a.h\"",
      "%\\\n:include \"a.h\"",
      "\?\?=include \"a.h\"",
      "\v\f#\v\finclude \"a.h\"",
      "int x = 1'000; /* don't */\n#include \"a.h\"",
      "const char* s = \"/*\";\n#include \"a.h\"",
      "const char* s = \"\\\"/*\";\n#include \"a.h\"",
      "char c = '\"'; /*\n*/\n#include \"a.h\"",
      "const char* s = R\"x(\" /* )\" )x\";\n#include \"a.h\"",
      "const char* s = u8R\"(\\\n\"//)\";\n#include \"a.h\"",
      "const char* s = FOUR\"(\";\n#include \"a.h\"",
      "#error don't\n#include \"a.h\"",
      "#define F(x) x\nF(\n#include \"a.h\"\n)",
  };
  for (const std::string& source : k_ways) {
    CAPTURE(source);
    CHECK(header_paths(kernel_with(source, {{"a.h", ""}})) == Paths{"a.h"});
  }
}

TEST_CASE("What only looks like an include is not one") {
  for (const char* source : {
           "// #include \"no.h\"\n// #include <no.h>",
           "/* so:\n#include \"no.h\"\n#include <no.h>\n#embed \"no\"\n__has_include(<no.h>)\n*/",
           "// a comment \\\n#include \"no.h\"\n",
           "x #include \"no.h\"",
           "#includes \"no.h\"",
           "#define S \"#include <no.h>\"",
           "const char* s = \"\\\n#include <no.h>\";",
           "const char* s = \"__has_include\"; // __has_embed",
           "## include \"no.h\"",
           "#pragma once\n#if 1 // include\n#endif",
           "int include, import, embed;",
       }) {
    CAPTURE(source);
    CHECK(header_paths(kernel_with(source)).empty());
  }
}

TEST_CASE("A file that the key could not know is refused") {
  // Each with what the message says was found, on line 2.
  const std::pair<const char*, const char*> k_refused[] = {
      {"#include <no3.h>", "#include <no3.h>"},
      {"#define H \"x.h\" /*\n*/\n#include H", "#include H"},
      {"# /**/ inc\\\nlude H", "#include H"},
      {"%:include <x>", "%:include <x>"},
      {"\?\?=include <x>", "\?\?=include <x>"},
      {"#if 0\n#include <x>\n#endif", "#include <x>"},
      {"#include \"unclosed", "#include \"unclosed"},
      {"#include \"a.h\" \"b.h\"", "#include \"a.h\" \"b.h\""},
      {"#include \"a.h\" H", "#include \"a.h\" H"},
      {"#include", "#include"},
      {"#include \"\"", "#include \"\""},
      {"#include \"/etc/passwd\"", "#include \"/etc/passwd\""},
      {"#include \"../a.h\"", "#include \"../a.h\""},
      {"#include \"x/../a.h\"", "#include \"x/../a.h\""},
      {"#include \"x\\a.h\"", "#include \"x\\a.h\""},
      {"#include \"x\?\?=a.h\"", "#include \"x\?\?=a.h\""},
      {"#include R\"(a.h)\"", "#include R\"(a.h)\""},
      {"#include_next \"a.h\"", "#include_next \"a.h\""},
      {"#import \"a.h\"", "#import \"a.h\""},
      {"#embed \"a.h\"", "#embed \"a.h\""},
      {"#if __has_include(\"a.h\")\n#endif", "__has_include"},
      {"#if __has_include_next(\"a.h\")\n#endif", "__has_include_next"},
      {"#ifdef __has\\\n_embed\n#endif", "__has_embed"},
      {"#define HAS __has_embed", "__has_embed"},
      {"const char* s = R\"(\n #include <x>\n)\";", "#include <x>"},
      {"// why\?\?/", "\?\?/"},
      {"int x; \\ \nint y;", "\\ "},
      {"int x;\r#include <x>\n", "carriage return"},
      {"#if 0\nisn't /*\n#endif\n#include <x>\n/* */", "/*"},
  };
  for (const auto& [text, found] : k_refused) {
    CAPTURE(text);
    const std::string source = "\n" + std::string(text) + "\n";
    const std::string message = message_of<CompileError>([&] {
      specialized(kernel_with(source, {{"a.h", ""}}));
    });
    CAPTURE(message);
    CHECK(message.starts_with("mine/k.cu:"));
    CHECK(contains(message, found));
    CHECK(contains(message, "; "));
    CHECK_FALSE(contains(message, "\n"));
  }
  CHECK(contains(
      message_of<CompileError>([] { specialized(kernel_with(std::string("#incl\0ude <x>", 13))); }), "NUL"));
}

TEST_CASE("A refusal names the line, what was found and the rule") {
  const std::string message = message_of<CompileError>([] {
    specialized(kernel_with("/*\n*/ int x = \\\n 1;\n#include \"a.h\"\n",
                            {{"a.h", "#define H <x>\n// \\\n\n  # include  H  // why"}}));
  });
  CHECK(message ==
        "a.h:4: found '#include H', which names no known file; a template may only #include \"path\" of its "
        "own headers and the built-in ones, by their plain relative paths");
}

TEST_CASE("A template's path must be plain and relative") {
  for (const char* path : {"", "/etc/x.cu", "../x.cu", "a/../../x.cu", "a\"b.cu", "a\nb.cu", "a\\b.cu"}) {
    KernelTemplate kernel = kernel_with("");
    kernel.path = path;
    CHECK(contains(message_of<CompileError>([&] { specialized(kernel); }), "is not a plain relative path"));
  }
}

TEST_CASE("Every built-in file passes") {
  for (const EmbeddedTemplate& embedded : embedded_templates()) {
    KernelTemplate kernel = kernel_with(std::string(embedded.text));
    CAPTURE(embedded.path);
    CHECK_NOTHROW(specialized(kernel));
  }
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
  const auto math_of = [&](const TemplateFiles& files) -> std::string {
    for (const SourceFile& header : specialized(kernel, files).headers)
      if (header.path == "device/math.cuh") return header.text;
    return {};
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
