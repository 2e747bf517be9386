// What selection makes of skinny_gemm requests: no compile and no launch.
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include <set>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/plan_table.hpp>
#include <jitsmith/runtime/selection.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::contains;
using test::message_of;

const Op& op() {
  static const Op the_op = skinny_gemm_op(TemplateFiles());
  return the_op;
}

Params complete(const SkinnyGemm& request) {
  return op().request.complete(params_of(request), "skinny_gemm");
}

Selection selection_of(const SkinnyGemm& request, const SelectionInputs& inputs = {}) {
  return select(op(), complete(request), device_profile("h200"), inputs);
}

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm selection");

TEST_CASE("Every candidate is complete, distinct, and one that its own schema allows") {
  const DeviceFacts& h200 = device_profile("h200");
  for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 31, 32})
    for (const ElementType out : {ElementType::bf16, ElementType::f32})
      for (const bool aligned : {true, false}) {
        const Params request = complete({.m = m, .n = 64, .k = 64, .out = out, .aligned = aligned});
        for (const Variant& variant : op().variants) {
          std::set<std::string> seen;
          for (const Params& candidate : variant.candidates(request, h200)) {
            CHECK(variant.kernel.schema.complete(candidate, variant.name) == candidate);
            CHECK(variant.misfit(request, candidate, h200).empty());
            CHECK(seen.insert(to_string(candidate)).second);
          }
          CHECK(seen.size() >= 1);
        }
        const Variant& generic = *op().variant(op().generic_variant);
        const Params params = op().generic_params(request);
        CHECK(generic.kernel.schema.complete(params, generic.name) == params);
        CHECK(generic.misfit(request, params, h200).empty());
      }
}

TEST_CASE("Batch-invariant requests only get variants with the invariant order") {
  for (std::int64_t m = 1; m <= 32; ++m)
    for (const auto& [n, k] :
         {std::pair<std::int64_t, std::int64_t>{32, 5120}, {2112, 7168}, {129280, 512}, {1, 8}}) {
      const Selection selection = selection_of({.m = m, .n = n, .k = k, .batch_invariant = true});
      CHECK(selection.variant->name == "simt");
      CHECK(selection.params.integer("threads") == 128);
      for (const Candidate& candidate : selection.candidates) {
        if (candidate.variant == "mma")
          CHECK(candidate.why_not == "batch_invariant keeps to the simt variant for every M");
        else if (candidate.params.integer("threads") != 128)
          CHECK(candidate.why_not == "batch_invariant needs threads=128");
      }
    }
  CHECK(contains(message_of<InvalidRequest>([] {
                   selection_of({.m = 1, .n = 8, .k = 64, .batch_invariant = true},
                                {.forced = ForcedChoice::parse("simt:threads=64")});
                 }),
                 "batch_invariant needs threads=128"));
}

TEST_CASE("Operands in other formats and large M are declined, empty outputs need nothing") {
  CHECK(selection_of({.m = 1, .n = 8, .k = 8, .x_format = SkinnyGemmFormat::f16}).verdict.reason ==
        "skinny_gemm serves bf16 operands, and x_format is f16; convert it or keep your own kernel");
  CHECK(selection_of({.m = 1, .n = 8, .k = 8, .w_format = SkinnyGemmFormat::mxfp8}).verdict.reason ==
        "skinny_gemm serves bf16 operands, and w_format is mxfp8; convert it or keep your own kernel");
  CHECK(selection_of({.m = 33, .n = 8, .k = 8}).verdict.reason ==
        "skinny_gemm serves m up to 32, and m is 33; split the rows or keep your own kernel");
  CHECK(selection_of({.m = 0, .n = 8, .k = 8}).verdict.kind == Verdict::nothing_to_do);
  CHECK(selection_of({.m = 8, .n = 0, .k = 8}).verdict.kind == Verdict::nothing_to_do);
  CHECK(selection_of({.m = 8, .n = 8, .k = 0}).verdict.kind == Verdict::serve);
}

TEST_CASE("Requests that contradict themselves are refused") {
  CHECK(message_of<InvalidRequest>([] { (void)complete({.m = 1, .n = 8, .k = 12}); }) ==
        "skinny_gemm: aligned=true needs k to be a multiple of 8, but k is 12; set aligned=false");
  CHECK_THROWS_AS((void)complete({.m = -1, .n = 8, .k = 8}), InvalidRequest);
  CHECK_THROWS_AS((void)complete({.m = 1, .n = (std::int64_t{1} << 30) + 1, .k = 8}), InvalidRequest);
  CHECK_THROWS_AS((void)complete({.m = 1, .n = 8, .k = 8, .out = ElementType::i32}), InvalidRequest);
}

TEST_CASE("160 threads can be forced, 16-byte loads of unaligned operands can't") {
  const Selection wide = selection_of(
      {.m = 1, .n = 32, .k = 5120}, {.forced = ForcedChoice::parse("simt:threads=160,tile_n=4,vector=true")});
  CHECK(wide.params.integer("threads") == 160);
  CHECK(wide.shape == LaunchShape{.grid = {8, 1, 1}, .block = {160, 1, 1}});
  CHECK(contains(message_of<InvalidRequest>([] {
                   selection_of({.m = 1, .n = 32, .k = 5120, .aligned = false},
                                {.forced = ForcedChoice::parse("simt:vector=true")});
                 }),
                 "its 16-byte loads need aligned=true"));
}

TEST_CASE("The grid covers every tile once, and never wraps") {
  for (const std::int64_t m : {1, 5, 8, 9, 32})
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{129}, std::int64_t{1} << 30}) {
      const SkinnyGemm request{.m = m, .n = n, .k = 64};
      const Selection selection = selection_of(request);
      const std::int64_t tile_m = selection.params.integer("tile_m"),
                         tile_n = selection.params.integer("tile_n");
      const std::int64_t blocks =
          (m + tile_m - 1) / tile_m * ((n + tile_n - 1) / tile_n) * selection.shape.cluster;
      CHECK(blocks <= 2147483647);
      CHECK(std::int64_t{selection.shape.grid[0]} == blocks);
      CHECK(
          select(op(), complete(request), device_profile("h200"), {.forced = ForcedChoice::parse("generic")})
              .shape.grid[0] > 0);
    }
  // 5 x 2^30 blocks would be a quarter of them in 32 bits.
  CHECK(contains(message_of<InvalidRequest>([] {
                   selection_of({.m = 5, .n = std::int64_t{1} << 30, .k = 64},
                                {.forced = ForcedChoice::parse("simt:tile_m=1,tile_n=1,vector=true")});
                 }),
                 "its 5368709120 blocks are more than the 2147483647 of a launch"));
}

TEST_CASE("More memory traffic never makes the model's time shorter") {
  for (const Variant& variant : op().variants)
    for (const Params& candidate :
         variant.candidates(complete({.m = 1, .n = 64, .k = 4096}), device_profile("h200"))) {
      double before = 0;
      for (const std::int64_t n : {64, 512, 4096, 32768, 262144}) {
        const double cost =
            variant.cost_us(complete({.m = 1, .n = n, .k = 4096}), candidate, device_profile("h200"));
        CHECK(cost >= before);
        CHECK(cost > 0);
        before = cost;
      }
    }
}

TEST_CASE("The tensor cores get the many rows, and no candidate is one of theirs on the host") {
  CHECK(selection_of({.m = 1, .n = 2112, .k = 7168}).variant->name == "simt");
  CHECK(selection_of({.m = 32, .n = 2112, .k = 7168}).variant->name == "mma");
  const Selection host = select(op(), complete({.m = 32, .n = 2112, .k = 7168}), device_profile("host"), {});
  for (const Candidate& candidate : host.candidates) CHECK(candidate.variant == "simt");
  CHECK(contains(
      message_of<InvalidRequest>([] {
        selection_of({.m = 8, .n = 64, .k = 64},
                     {.forced = ForcedChoice::parse("mma:warps=16,tile_m=32,tile_n=32,vector=true")});
      }),
      "(warps + 1) x tile_m x (tile_n + 4) = (16 + 1) x 32 x (32 + 4) is more than the 12288 sums"));
}

TEST_CASE("Few columns get clusters, and none where the architecture has none") {
  const SkinnyGemm narrow{.m = 16, .n = 384, .k = 5120};
  const Selection selection = selection_of(narrow);
  CHECK(selection.variant->name == "mma");
  CHECK(selection.shape.cluster > 1);
  CHECK(selection.shape.grid[0] == 384 / 16 * selection.shape.cluster);
  const ForcedChoice clusters = ForcedChoice::parse("mma:warps=4,cluster=2,vector=true");
  for (const char* device : {"h100", "b200", "rtx5090"})
    CHECK(select(op(), complete(narrow), device_profile(device), {.forced = clusters}).shape.cluster == 2);
  for (const char* device : {"a100", "l40s"}) {
    const Selection old = select(op(), complete(narrow), device_profile(device), {});
    CHECK(old.shape.cluster == 1);
    CHECK(contains(explain(op(), complete(narrow), device_profile(device), old),
                   "its clusters of 4 blocks need sm_90 or later, and the device is sm_8"));
    CHECK(contains(message_of<InvalidRequest>(
                       [&] { select(op(), complete(narrow), device_profile(device), {.forced = clusters}); }),
                   "its clusters of 2 blocks need sm_90 or later, and the device is sm_8"));
  }
}

TEST_CASE("A request for programmatic launches gets kernels for them, every other request none") {
  for (const bool programmatic : {true, false})
    for (const std::int64_t m : {1, 8, 32}) {
      const SkinnyGemm request{.m = m, .n = 1024, .k = 5120, .programmatic = programmatic};
      const Selection selection = selection_of(request);
      CHECK(selection.params.flag("programmatic") == programmatic);
      CHECK(selection_of(request, {.forced = ForcedChoice::parse("generic")}).params.flag("programmatic") ==
            programmatic);
      CHECK_FALSE(selection.shape.programmatic);  // that is for each launch to say
      for (const Candidate& candidate : selection.candidates)
        CHECK(candidate.params.flag("programmatic") == programmatic);
    }
  CHECK(contains(message_of<InvalidRequest>([] {
                   selection_of({.m = 1, .n = 64, .k = 64},
                                {.forced = ForcedChoice::parse("simt:programmatic=true")});
                 }),
                 "it is for programmatic launches and the request is not"));
}

TEST_SUITE_END();

}  // namespace jitsmith
