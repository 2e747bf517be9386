#include <jitsmith/runtime/selection.hpp>

#include <algorithm>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::contains;
using test::message_of;

Params tile(std::int64_t value, bool fast = false) {
  return {{"tile", value}, {"fast", fast}};
}

// Two variants. Requests with k=13 fit no candidate, n > 100 is declined, and `fast` never fits an odd n.
Op two_variants() {
  const auto variant = [](std::string name, std::vector<std::int64_t> tiles, double base_cost) {
    Variant v;
    v.name = std::move(name);
    v.kernel.schema = Schema().integer("tile", {.min = 1, .max = 64}, "", 1).boolean("fast", "", false);
    v.candidates = [tiles](const Params&, const DeviceFacts&) {
      std::vector<Params> all;
      for (const std::int64_t t : tiles) all.push_back(tile(t));
      return all;
    };
    v.misfit = [](const Params& request, const Params& params, const DeviceFacts&) -> std::string {
      if (request.integer("k") == 13 && params.integer("tile") != 7) return "13 brings bad luck";
      return params.flag("fast") && request.integer("n") % 2 != 0 ? "n is odd" : "";
    };
    v.cost_us = [base_cost](const Params&, const Params& params, const DeviceFacts& device) {
      return base_cost + static_cast<double>(params.integer("tile")) / device.multiprocessors;
    };
    v.shape = [](const Params& request, const Params& params) {
      return LaunchShape{.grid = {static_cast<std::uint32_t>(request.integer("n")), 2, 1},
                         .block = {static_cast<std::uint32_t>(params.integer("tile")), 1, 1}};
    };
    return v;
  };
  Op op;
  op.name = "toy";
  op.request = Schema().integer("n", {}, "").integer("k", {}, "", 8);
  op.variants = {variant("first", {4, 2, 8}, 1.0), variant("second", {2, 1}, 1.0)};
  op.generic_variant = "second";
  op.generic_params = [](const Params&) { return tile(7); };
  op.contract = [](const Params& request, const DeviceFacts&) {
    if (request.integer("n") == 0) return Verdict{Verdict::nothing_to_do, {}};
    return request.integer("n") > 100 ? Verdict{Verdict::decline, "n is beyond 100"} : Verdict{};
  };
  return op;
}

const DeviceFacts k_device{.name = "toy GPU", .target = {Executor::cuda, "sm_90a"}, .multiprocessors = 10};

Params request(std::int64_t n, std::int64_t k = 8) {
  return {{"n", n}, {"k", k}};
}

TableRow row(std::string variant, std::vector<std::pair<std::string, std::string>> params,
             std::string n = "6") {
  return {.op = "toy",
          .arch = "sm_90a",
          .when = {{"n", std::move(n)}},
          .variant = std::move(variant),
          .params = std::move(params),
          .measured = Measurement{.us = 3.5, .replaced = "heuristic", .replaced_us = 4.5, .rounds = 3}};
}

TuningTable table_of(std::vector<TableRow> rows) {
  TuningTable table;
  for (TableRow& r : rows) table.add(std::move(r));
  return table;
}

std::string choice_of(const Selection& selection) {
  return fmt::format("{} {}:{}", name_of(selection.source), selection.variant->name,
                     to_string(selection.params));
}

std::string choice(const Params& wanted, const SelectionInputs& inputs = {}) {
  static const Op op = two_variants();
  return choice_of(select(op, wanted, k_device, inputs));
}

SelectionInputs forced(std::string_view text) {
  return {.forced = ForcedChoice::parse(text)};
}

std::string forced_refusal(std::string_view text, const Params& wanted) {
  return message_of<InvalidRequest>([&] { choice(wanted, forced(text)); });
}

}  // namespace

TEST_SUITE_BEGIN("Selection");

TEST_CASE("The sources decide in order") {
  const TuningTable user = table_of({row("first", {{"tile", "16"}})}),
                    shipped = table_of({row("first", {{"tile", "32"}})});
  SelectionInputs all{
      .user_table = &user, .shipped_table = &shipped, .forced = ForcedChoice::parse("second:tile=5")};
  CHECK(choice(request(6), all) == "forced choice second:tile=5,fast=false");
  all.forced.reset();
  CHECK(choice(request(6), all) == "user table first:tile=16,fast=false");
  all.user_table = nullptr;
  CHECK(choice(request(6), all) == "shipped table first:tile=32,fast=false");
  all.shipped_table = nullptr;
  CHECK(choice(request(6), all) == "heuristic second:tile=1,fast=false");
  all.shipped_table = &shipped;
  all.forced = ForcedChoice::parse("generic");
  CHECK(choice(request(6), all) == "generic second:tile=7,fast=false");
}

TEST_CASE("The generic variant serves when no candidate fits") {
  const Op op = two_variants();
  const Selection selection = select(op, request(6, 13), k_device, {});
  CHECK(choice_of(selection) == "generic second:tile=7,fast=false");
  CHECK(selection.reason == "no candidate fits the request");
  for (const Candidate& candidate : selection.candidates) CHECK(candidate.why_not == "13 brings bad luck");
}

TEST_CASE("A request outside the contract is declined or has nothing to do") {
  const Op op = two_variants();
  const Selection declined = select(op, request(101), k_device, {.forced = ForcedChoice::parse("first")});
  CHECK(declined.verdict.kind == Verdict::decline);
  CHECK(declined.verdict.reason == "n is beyond 100");
  CHECK(declined.variant == nullptr);
  CHECK(select(op, request(0), k_device, {}).verdict.kind == Verdict::nothing_to_do);
}

TEST_CASE("The launch shape is that of the winner") {
  const Op op = two_variants();
  CHECK(select(op, request(6), k_device, forced("first:tile=8")).shape ==
        LaunchShape{.grid = {6, 2, 1}, .block = {8, 1, 1}});
}

TEST_CASE("A row that can't be used is passed over") {
  const TuningTable shipped = table_of({row("first", {{"tile", "32"}}, "7")});
  const auto with_user = [&](TableRow bad) {
    const TuningTable user = table_of({std::move(bad)});
    return choice(request(7), {.user_table = &user, .shipped_table = &shipped});
  };
  const std::string next = "shipped table first:tile=32,fast=false";
  CHECK(with_user(row("first", {{"tile", "16"}, {"fast", "true"}}, "7")) == next);  // does not fit an odd n
  CHECK(with_user(row("gone", {{"tile", "16"}}, "7")) == next);
  CHECK(with_user(row("first", {{"tile", "65"}}, "7")) == next);
  CHECK(with_user(row("first", {{"tile", "many"}}, "7")) == next);
  CHECK(with_user(row("first", {{"depth", "2"}}, "7")) == next);
  CHECK(with_user(row("first", {{"tile", "16"}}, "8")) == next);
}

TEST_CASE("Rows in another order give the same choice") {
  std::vector<TableRow> rows{row("first", {{"tile", "16"}}), row("first", {{"tile", "17"}}, "7"),
                             row("second", {{"tile", "18"}}, "8"), row("second", {{"tile", "19"}}, "9")};
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(rows, random);
    const TuningTable table = table_of(rows);
    CHECK(choice(request(6), {.user_table = &table}) == "user table first:tile=16,fast=false");
    CHECK(choice(request(8), {.user_table = &table}) == "user table second:tile=18,fast=false");
  }
}

TEST_CASE("The reason says where the choice comes from") {
  const Op op = two_variants();
  const TuningTable measured = table_of({row("first", {{"tile", "16"}})});
  CHECK(select(op, request(6), k_device, {.user_table = &measured}).reason ==
        "measured 3.5 us against 4.5 us of heuristic");
  TableRow published = row("first", {{"tile", "16"}});
  published.measured.reset();
  published.provenance = {{"note", "published, not measured here"}};
  const TuningTable unmeasured = table_of({published});
  CHECK(select(op, request(6), k_device, {.shipped_table = &unmeasured}).reason ==
        "published, not measured here");
  CHECK(select(op, request(6), k_device, {}).reason ==
        "the cost model expects 1.10 us, the least of 5 candidates");
  CHECK(select(op, request(6), k_device, forced("first")).reason == "forced by the caller");
  CHECK(select(op, request(6), k_device, forced("generic")).reason == "forced by the caller");
}

TEST_CASE("Equal costs keep the stable order") {
  Op op = two_variants();
  for (Variant& variant : op.variants)
    variant.cost_us = [](const Params&, const Params&, const DeviceFacts&) { return 2.0; };
  const Selection selection = select(op, request(6), k_device, {});
  CHECK(choice_of(selection) == "heuristic first:tile=4,fast=false");
  std::string order;
  for (const Candidate& candidate : selection.candidates)
    order += fmt::format("{}{} ", candidate.variant[0], candidate.params.integer("tile"));
  CHECK(order == "f4 f2 f8 s2 s1 ");
}

TEST_CASE("Without a cost model the first candidate that fits wins") {
  Op op = two_variants();
  for (Variant& variant : op.variants) variant.cost_us = {};
  const Selection selection = select(op, request(6), k_device, {});
  CHECK(choice_of(selection) == "heuristic first:tile=4,fast=false");
  CHECK(selection.reason == "the first candidate");
}

TEST_CASE("A forced variant alone takes its best candidate") {
  CHECK(choice(request(6), forced("first")) == "forced choice first:tile=2,fast=false");
}

TEST_CASE("Forced parameters that no candidate has are completed by the best candidate that allows them") {
  CHECK(choice(request(6), forced("first:fast=true")) == "forced choice first:tile=2,fast=true");
  CHECK(choice(request(6), forced("first:tile=33,fast=1")) == "forced choice first:tile=33,fast=true");
  CHECK(choice(request(6), forced("second:fast=true")) == "forced choice second:tile=1,fast=true");
}

TEST_CASE("A forced choice that does not exist or does not fit is refused") {
  CHECK(forced_refusal("third", request(6)) == "toy has no variant 'third'; give one of first, second");
  CHECK(contains(forced_refusal("first:depth=1", request(6)), "toy variant first has no parameter 'depth'"));
  CHECK(contains(forced_refusal("first:tile=65", request(6)),
                 "tile=65 is not allowed; give an integer from 1 to 64"));
  CHECK(
      forced_refusal("first:tile=3,fast=true", request(7)) ==
      "toy can't be forced to first:tile=3,fast=true here, because n is odd; choose others or leave it out");
}

TEST_CASE("A forced choice is written NAME or NAME:parameter=value,...") {
  const ForcedChoice all = ForcedChoice::parse("simt:threads=128,out=bf16,note=a=b");
  CHECK(all.variant == "simt");
  using Texts = std::vector<std::pair<std::string, std::string>>;
  CHECK(all.params == Texts{{"threads", "128"}, {"out", "bf16"}, {"note", "a=b"}});
  CHECK(ForcedChoice::parse("simt").params.empty());
  for (const char* text : {"", ":a=1", "simt:", "simt:a", "simt:=1", "simt:a=1,,b=2"})
    CHECK(contains(message_of<InvalidRequest>([&] { ForcedChoice::parse(text); }),
                   "variant '" + std::string(text) + "' is not of the form"));
}

TEST_CASE("Every loser says why, and the winner does not") {
  const Op op = two_variants();
  const Selection by_cost = select(op, request(6), k_device, {});
  CHECK(by_cost.candidates.front().why_not.empty());
  for (std::size_t i = 1; i < by_cost.candidates.size(); ++i)
    CHECK(by_cost.candidates[i].why_not == "costs no less by the model");
  for (const Candidate& candidate : select(op, request(6), k_device, forced("first:tile=33")).candidates)
    CHECK(candidate.why_not == "forced choice decided");
}

TEST_CASE("The explanation is this text") {
  const Op op = two_variants();
  CHECK(explain(op, request(6), k_device, select(op, request(6), k_device, {})) ==
        "request   toy n=6,k=8\n"
        "device    toy GPU (sm_90a, 10 multiprocessors)\n"
        "winner    second:tile=1,fast=false\n"
        "source    heuristic: the cost model expects 1.10 us, the least of 5 candidates\n"
        "launch    grid 6x2x1, 1 threads, 0 bytes of dynamic shared memory\n"
        "*   1.10 us  second:tile=1,fast=false\n"
        "    1.20 us  first:tile=2,fast=false  costs no less by the model\n"
        "    1.20 us  second:tile=2,fast=false  costs no less by the model\n"
        "    1.40 us  first:tile=4,fast=false  costs no less by the model\n"
        "    1.80 us  first:tile=8,fast=false  costs no less by the model\n");
  CHECK(
      explain(op, request(101), k_device, select(op, request(101), k_device, {})) ==
      "request   toy n=101,k=8\ndevice    toy GPU (sm_90a, 10 multiprocessors)\ndeclined  n is beyond 100\n");
  CHECK(explain(op, request(0), k_device, select(op, request(0), k_device, {})) ==
        "request   toy n=0,k=8\ndevice    toy GPU (sm_90a, 10 multiprocessors)\nnothing   the output is "
        "empty; no launch\n");
}

TEST_CASE("The same inputs give the same decision") {
  const Op op = two_variants();
  const TuningTable user = table_of({row("first", {{"tile", "16"}})});
  for (const std::int64_t n : {1, 6, 7, 100}) {
    const SelectionInputs inputs{.user_table = &user};
    const Selection once = select(op, request(n), k_device, inputs),
                    again = select(op, request(n), k_device, inputs);
    CHECK(explain(op, request(n), k_device, once) == explain(op, request(n), k_device, again));
  }
}

TEST_SUITE_END();

}  // namespace jitsmith
