#include <jitsmith/jit/nvrtc_diagnostics.hpp>

#include <doctest/doctest.h>

using namespace jitsmith;

namespace {

const SpecializedSource k_source = {{"family/kernel.cu", "one\ntwo\nthree\nfour\nfive\nsix\nseven"},
                                    {{"device/tile.cuh", "alpha\nbeta"}},
                                    "k<1>"};

}  // namespace

TEST_SUITE("nvrtc diagnostics") {
  TEST_CASE("the first error is an error and not the warning before it") {
    CHECK(first_error_line(
              "a.cu(1): warning #68-D: integer error: no\n\na.cu(2): error: bad\na.cu(3): error: worse") ==
          "a.cu(2): error: bad");
    CHECK(first_error_line("a.cu(1): catastrophic error: could not open source file \"x\"") ==
          "a.cu(1): catastrophic error: could not open source file \"x\"");
    CHECK(first_error_line("ptxas info    : 0 bytes gmem\nptxas error   : too much (1, 2)\n") ==
          "ptxas error   : too much (1, 2)");
    CHECK(first_error_line("nvrtc: error: unrecognized option --x found\n") ==
          "nvrtc: error: unrecognized option --x found");
    CHECK(first_error_line("no known form") == "no known form");
    CHECK(first_error_line("") == "the compiler gave no reason");
  }

  TEST_CASE("an error about the name expression is told from one in the source") {
    const std::string about_name = "__nv_name_map(2): error: no instance of \"k\"\n";
    CHECK(name_expression_error(about_name) == "no instance of \"k\"");
    CHECK(name_expression_error("a.cu(2): error: bad\n" + about_name).empty());
    CHECK(name_expression_error("").empty());
  }

  TEST_CASE("the lines around an error are shown with their numbers") {
    CHECK(numbered_source_lines("family/kernel.cu(4): error: bad\n  four\n  ^\n", k_source) ==
          "family/kernel.cu:\n"
          "     2 | two\n"
          "     3 | three\n"
          ">    4 | four\n"
          "     5 | five\n"
          "     6 | six\n");
  }

  TEST_CASE("the places that a host compiler names are read too") {
    CHECK(first_error_line("k.cu: In function:\na.cu:1:2: warning: an error: no\na.cu:3:4: error: bad") ==
          "a.cu:3:4: error: bad");
    const std::string shown = "device/tile.cuh:\n     1 | alpha\n>    2 | beta\n";
    CHECK(numbered_source_lines("device/tile.cuh:2:7: error: bad", k_source) == shown);
    CHECK(numbered_source_lines("./device/tile.cuh:2:7: fatal error: bad", k_source) == shown);
    CHECK(numbered_source_lines("device/tile.cuh:2: error: bad", k_source) == shown);
    CHECK(numbered_source_lines("device/tile.cuh:2:7: note: no error: here", k_source).empty());
    CHECK(numbered_source_lines("device/tile.cuh:x:7: error: bad\n: error: bad\n2: error: bad", k_source)
              .empty());
  }

  TEST_CASE("errors in headers and at both ends of a file are shown") {
    CHECK(numbered_source_lines("device/tile.cuh(2): error: bad", k_source) ==
          "device/tile.cuh:\n     1 | alpha\n>    2 | beta\n");
    CHECK(numbered_source_lines("family/kernel.cu(1): error: bad\nfamily/kernel.cu(1): error: worse",
                                k_source) ==
          "family/kernel.cu:\n>    1 | one\n     2 | two\n     3 | three\n");
  }

  TEST_CASE("places that are not in the source are passed over") {
    CHECK(numbered_source_lines("other.cu(1): error: bad", k_source).empty());
    CHECK(numbered_source_lines("family/kernel.cu(2): warning #1-D: odd", k_source).empty());
    CHECK(numbered_source_lines("family/kernel.cu(x): error: bad\n(2): error: bad\n): error:", k_source)
              .empty());
    CHECK(numbered_source_lines("family/kernel.cu(99999999999999999999999): error: bad", k_source).empty());
    CHECK(numbered_source_lines("family/kernel.cu(400): error: bad", k_source) == "family/kernel.cu:\n");
  }
}
