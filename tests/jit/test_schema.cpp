#include <jitsmith/jit/schema.hpp>

#include <limits>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::contains;
using test::message_of;

Schema tiles() {
  return Schema()
      .integer("threads", {.min = 32, .max = 1024, .multiple_of = 32}, "threads of a block", 128)
      .integer("tile_m", {.listed = {1, 2, 4}}, "rows of a tile")
      .integer("tile_n", {.listed = {1, 2, 4, 8}}, "columns of a tile", 4)
      .boolean("vector", "16-byte loads", true)
      .choice("order", {"rows", "columns", "tiles"}, "order of blocks", "rows", "jitsmith::Order")
      .type("out", {ElementType::bf16, ElementType::f32}, "type of the output", ElementType::f32)
      .rule("tile_m x tile_n is {tile_m} x {tile_n}, more than 8; {unknown} stays {",
            [](const Params& p) { return p.integer("tile_m") * p.integer("tile_n") <= 8; })
      .rule("vector={vector} writes no {out}; order={order}",
            [](const Params& p) { return p.flag("vector") || p.type("out") == ElementType::bf16; });
}

Params with(std::string_view name, Value value) {
  Params params{{"tile_m", std::int64_t{1}}};
  params.set(name, std::move(value));
  return params;
}

std::string refusal(const Params& given) {
  return message_of<InvalidRequest>([&] { tiles().complete(given, "op variant v"); });
}

std::string parse_refusal(std::string_view name, std::string_view text) {
  return message_of<InvalidRequest>([&] { tiles().parse(name, text, "op"); });
}

}  // namespace

TEST_SUITE_BEGIN("Schema");

TEST_CASE("Defaults are filled in and the order is that of the schema") {
  CHECK(to_string(tiles().complete(Params{{"out", ElementType::bf16}, {"tile_m", std::int64_t{2}}}, "op")) ==
        "threads=128,tile_m=2,tile_n=4,vector=true,order=rows,out=bf16");
}

TEST_CASE("Completing what is complete changes nothing") {
  const Params once = tiles().complete(with("threads", std::int64_t{64}), "op");
  CHECK(tiles().complete(once, "op") == once);
}

TEST_CASE("A parameter without a default is required") {
  CHECK(refusal({}) == "op variant v needs parameter 'tile_m' (rows of a tile); give it one of 1, 2, 4");
}

TEST_CASE("An unknown name is refused with the names there are") {
  CHECK(refusal(with("tile", std::int64_t{1})) ==
        "op variant v has no parameter 'tile'; it has threads, tile_m, tile_n, vector, order, out");
  CHECK(message_of<InvalidRequest>([] {
          Schema().complete(Params{{"a", true}}, "op");
        }) == "op has no parameter 'a'; it has none");
}

TEST_CASE("A value of the wrong kind is refused") {
  CHECK(refusal(with("threads", true)) ==
        "op variant v: threads=true is not allowed; give a multiple of 32 from 32 to 1024");
  CHECK(refusal(with("vector", std::int64_t{1})) ==
        "op variant v: vector=1 is not allowed; give true or false");
  CHECK(refusal(with("order", ElementType::bf16)) ==
        "op variant v: order=bf16 is not allowed; give rows, columns or tiles");
  CHECK(refusal(with("out", std::string("bf16"))) ==
        "op variant v: out=bf16 is not allowed; give bf16 or f32");
}

TEST_CASE("Integers keep to their range, multiple and list") {
  CHECK(tiles().complete(with("threads", std::int64_t{160}), "op").integer("threads") == 160);
  for (const std::int64_t threads : {32, 96, 160, 992, 1024})
    CHECK_NOTHROW(tiles().complete(with("threads", threads), "op"));
  for (const std::int64_t threads : {-32, 0, 1, 31, 33, 1023, 1056})
    CHECK_THROWS_AS(tiles().complete(with("threads", threads), "op"), InvalidRequest);
  for (const std::int64_t tile : {0, 3, 5, 16})
    CHECK(contains(refusal(with("tile_n", tile)), "give one of 1, 2, 4, 8"));
}

TEST_CASE("Both ends of a range belong to it") {
  const IntegerSet range{.min = -2, .max = 9}, even{.min = 2, .max = 8, .multiple_of = 2}, open{.min = 1};
  for (const std::int64_t inside : {-2, 0, 9}) CHECK(range.contains(inside));
  for (const std::int64_t outside : {-3, 10}) CHECK_FALSE(range.contains(outside));
  for (const std::int64_t inside : {2, 4, 8}) CHECK(even.contains(inside));
  for (const std::int64_t outside : {0, 1, 3, 9, 10}) CHECK_FALSE(even.contains(outside));
  CHECK(open.contains(std::numeric_limits<std::int64_t>::max()));
  CHECK_FALSE(open.contains(0));
}

TEST_CASE("Sets of integers describe themselves") {
  CHECK(IntegerSet{.min = 1}.describe() == "an integer of at least 1");
  CHECK(IntegerSet{.min = 1, .max = 32}.describe() == "an integer from 1 to 32");
  CHECK(IntegerSet{.multiple_of = 8}.describe() == "a multiple of 8 of at least 0");
  CHECK(IntegerSet{.min = 32, .max = 64, .multiple_of = 32}.describe() == "a multiple of 32 from 32 to 64");
  CHECK(IntegerSet{.listed = {4, 2}}.describe() == "one of 4, 2");
}

TEST_CASE("A choice or type that is not listed is refused") {
  CHECK(refusal(with("order", std::string("diagonal"))) ==
        "op variant v: order=diagonal is not allowed; give rows, columns or tiles");
  CHECK(contains(refusal(with("out", ElementType::i64)), "out=i64 is not allowed; give bf16 or f32"));
}

TEST_CASE("A broken rule is told with the values filled in") {
  Params wide = with("tile_m", std::int64_t{4});
  CHECK(refusal(wide) == "op variant v: tile_m x tile_n is 4 x 4, more than 8; {unknown} stays {");
  wide.set("tile_n", std::int64_t{2});
  CHECK_NOTHROW(tiles().complete(wide, "op"));
  CHECK(refusal(with("vector", false)) == "op variant v: vector=false writes no f32; order=rows");
}

TEST_CASE("Each kind is read from text") {
  CHECK(tiles().parse("threads", "160", "op") == Value(std::int64_t{160}));
  CHECK(tiles().parse("vector", "true", "op") == Value(true));
  CHECK(tiles().parse("vector", "0", "op") == Value(false));
  CHECK(tiles().parse("order", "tiles", "op") == Value(std::string("tiles")));
  CHECK(tiles().parse("out", "bf16", "op") == Value(ElementType::bf16));
}

TEST_CASE("Text that spells no allowed value is refused") {
  for (const char* text : {"", "12x", "0x80", " 64", "+64", "1e2", "99999999999999999999", "33"})
    CHECK(parse_refusal("threads", text) ==
          "op: threads=" + std::string(text) + " is not allowed; give a multiple of 32 from 32 to 1024");
  CHECK(parse_refusal("vector", "yes") == "op: vector=yes is not allowed; give true or false");
  CHECK(parse_refusal("order", "Rows") == "op: order=Rows is not allowed; give rows, columns or tiles");
  CHECK(parse_refusal("out", "fp32") == "op: out=fp32 is not allowed; give bf16 or f32");
  CHECK(contains(parse_refusal("speed", "1"), "op has no parameter 'speed'"));
}

TEST_CASE("What a value prints is what parse reads") {
  const Params complete = tiles().complete(with("threads", std::int64_t{64}), "op");
  for (const auto& [name, value] : complete.items())
    CHECK(tiles().parse(name, to_string(value), "op") == value);
}

TEST_CASE("Template arguments are spelled in C++") {
  CHECK(tiles().template_arguments(tiles().complete(with("threads", std::int64_t{160}), "op")) ==
        "160, 1, 4, true, jitsmith::Order::rows, float");
  CHECK(Schema().template_arguments({}).empty());
  Schema types;
  types.type("a", {ElementType::bf16}, "").type("b", {ElementType::u8}, "").type("c", {ElementType::i32}, "");
  types.type("d", {ElementType::i64}, "");
  CHECK(types.template_arguments({{"a", ElementType::bf16},
                                  {"b", ElementType::u8},
                                  {"c", ElementType::i32},
                                  {"d", ElementType::i64}}) ==
        "jitsmith::bf16, jitsmith::uint8, jitsmith::int32, jitsmith::int64");
}

TEST_SUITE_END();

}  // namespace jitsmith
