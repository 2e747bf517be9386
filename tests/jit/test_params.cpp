#include <jitsmith/jit/params.hpp>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::message_of;

const Params k_one_of_each{{"threads", std::int64_t{128}},
                           {"vector", true},
                           {"order", std::string("rows")},
                           {"out", ElementType::bf16}};

}  // namespace

TEST_SUITE_BEGIN("Params");

TEST_CASE("Values print as they are spelled on the command line") {
  CHECK(to_string(k_one_of_each) == "threads=128,vector=true,order=rows,out=bf16");
  CHECK(to_string(Params{}).empty());
  CHECK(to_string(Value(std::int64_t{-3})) == "-3");
  CHECK(to_string(Value(false)) == "false");
}

TEST_CASE("Setting keeps the place of a known name and appends a new one") {
  Params params = k_one_of_each;
  params.set("vector", false);
  params.set("late", std::int64_t{1});
  CHECK(to_string(params) == "threads=128,vector=false,order=rows,out=bf16,late=1");
  CHECK(params != k_one_of_each);
}

TEST_CASE("A later value of the same name in a list wins") {
  CHECK(Params{{"a", std::int64_t{1}}, {"a", std::int64_t{2}}} == Params{{"a", std::int64_t{2}}});
}

TEST_CASE("Order and type are part of equality") {
  CHECK(Params{{"a", std::int64_t{1}}, {"b", std::int64_t{1}}} !=
        Params{{"b", std::int64_t{1}}, {"a", std::int64_t{1}}});
  CHECK(Params{{"a", std::int64_t{1}}} != Params{{"a", true}});
  CHECK(Params{{"a", std::string("bf16")}} != Params{{"a", ElementType::bf16}});
}

TEST_CASE("Typed reads give the value") {
  CHECK(k_one_of_each.integer("threads") == 128);
  CHECK(k_one_of_each.flag("vector"));
  CHECK(k_one_of_each.choice("order") == "rows");
  CHECK(k_one_of_each.type("out") == ElementType::bf16);
  CHECK(k_one_of_each.find("nothing") == nullptr);
}

TEST_CASE("A typed read of a missing name shows what there is") {
  CHECK(message_of<InvalidRequest>([] { (void)k_one_of_each.integer("tile"); }) ==
        "parameter 'tile' is missing from (threads=128,vector=true,order=rows,out=bf16); give it a value");
}

TEST_CASE("A typed read of another kind names the value and the kind") {
  CHECK(message_of<InvalidRequest>([] { (void)k_one_of_each.integer("vector"); }) ==
        "parameter 'vector' is true, which is not an integer; give it one");
  CHECK(message_of<InvalidRequest>([] { (void)k_one_of_each.flag("threads"); }) ==
        "parameter 'threads' is 128, which is not true or false; give it one");
  CHECK_THROWS_AS((void)k_one_of_each.choice("out"), InvalidRequest);
  CHECK_THROWS_AS((void)k_one_of_each.type("order"), InvalidRequest);
}

TEST_SUITE_END();

}  // namespace jitsmith
