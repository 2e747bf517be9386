// Arguments that a skinny_gemm launch refuses: each message names the argument, and nothing is written. The
// kernel is a stand-in that must not run.
#include <jitsmith/runtime/ops/skinny_gemm.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/templates/skinny_gemm/args.h>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::contains;
using test::message_of;

struct CountingKernel : LoadedKernel {
  void launch(Stream, const LaunchShape& shape, void* const* args) const override {
    ++launches;
    programmatic = shape.programmatic;
    std::memcpy(&last, args[0], sizeof(last));
  }
  mutable int launches = 0;
  mutable bool programmatic = false;
  mutable SkinnyGemmArgs last{};
};

constexpr SkinnyGemm k_request{.m = 3, .n = 4, .k = 16, .bias = SkinnyGemmBiasType::f32, .residual = true};

// A plan on the stand-in, and memory for every operand.
struct Bench {
  explicit Bench(const SkinnyGemm& for_request = k_request) : request(for_request) {
    auto state = std::make_shared<PlanState>();
    state->kernel = kernel;
    state->facts.param_bytes = {sizeof(SkinnyGemmArgs)};
    plan = TypedPlan<SkinnyGemm>(Plan(std::move(state)), request);
    args = {.x = memory,
            .w = memory + 1024,
            .y = memory + 2048,
            .bias = memory + 3072,
            .residual = memory + 3200};
    std::memset(memory, 0x5a, sizeof(memory));
  }

  void launch() const { plan.launch(nullptr, args); }

  std::string refusal() const {
    const std::vector<unsigned char> before(memory, memory + sizeof(memory));
    const std::string message = message_of<InvalidRequest>([this] { launch(); });
    CHECK(std::memcmp(memory, before.data(), before.size()) == 0);
    CHECK(kernel->launches == 0);
    CHECK(message.starts_with("skinny_gemm: "));
    return message;
  }

  alignas(16) unsigned char memory[4096];
  SkinnyGemm request;
  std::shared_ptr<CountingKernel> kernel = std::make_shared<CountingKernel>();
  TypedPlan<SkinnyGemm> plan;
  SkinnyGemm::Args args;
};

template <class Change>
std::string refusal_with(Change change, const SkinnyGemm& request = k_request) {
  Bench bench(request);
  change(bench.args);
  return bench.refusal();
}

const unsigned char* moved(const void* pointer, std::ptrdiff_t bytes) {
  return static_cast<const unsigned char*>(pointer) + bytes;
}

using Args = SkinnyGemm::Args;
constexpr std::int64_t k_huge = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_SUITE_BEGIN("skinny_gemm arguments");

TEST_CASE("Right arguments are launched") {
  const Bench bench;
  bench.launch();
  CHECK(bench.kernel->launches == 1);
  CHECK(bench.kernel->last.x_stride == 16);
  CHECK(bench.kernel->last.y_stride == 4);
}

TEST_CASE("A launch is programmatic when it asks for it and its plan was made for it") {
  for (const bool programmatic : {true, false}) {
    SkinnyGemm request = k_request;
    request.programmatic = true;
    Bench bench(request);
    bench.args.programmatic = programmatic;
    bench.launch();
    CHECK(bench.kernel->programmatic == programmatic);
  }
  CHECK(refusal_with([](Args& a) { a.programmatic = true; }) ==
        "skinny_gemm: a programmatic launch is asked for, but the plan was made with programmatic=false; "
        "plan with "
        "true or launch without");
}

TEST_CASE("A null operand is named") {
  CHECK(refusal_with([](Args& a) { a.x = nullptr; }) == "skinny_gemm: x is null; pass its address");
  CHECK(refusal_with([](Args& a) { a.w = nullptr; }) == "skinny_gemm: w is null; pass its address");
  CHECK(refusal_with([](Args& a) { a.y = nullptr; }) == "skinny_gemm: y is null; pass its address");
  CHECK(refusal_with([](Args& a) { a.bias = nullptr; }) == "skinny_gemm: bias is null; pass its address");
  CHECK(refusal_with([](Args& a) { a.residual = nullptr; }) ==
        "skinny_gemm: residual is null; pass its address");
}

TEST_CASE("Misaligned operands are named, with what they need") {
  for (const std::ptrdiff_t bytes : {1, 2, 8}) {
    const auto x = refusal_with([&](Args& a) { a.x = moved(a.x, bytes); });
    CHECK(contains(x, "x=0x"));
    CHECK(contains(x, "is not aligned to 16 bytes; align it, or plan with aligned=false"));
    CHECK(contains(refusal_with([&](Args& a) { a.w = moved(a.w, bytes); }), "w=0x"));
  }
  CHECK(contains(refusal_with([](Args& a) { a.y = const_cast<unsigned char*>(moved(a.y, 1)); }),
                 "is not aligned to 2 bytes; align it to its elements"));
  CHECK(contains(refusal_with([](Args& a) { a.bias = moved(a.bias, 2); }), "is not aligned to 4 bytes"));
  CHECK(contains(refusal_with([](Args& a) { a.residual = moved(a.residual, 1); }), "residual=0x"));
  CHECK(contains(refusal_with([](Args& a) { a.x_stride = 20; }),
                 "x_stride=20 is not a multiple of 8 elements (16 bytes)"));
  CHECK(contains(refusal_with([](Args& a) { a.w_stride = 17; }),
                 "w_stride=17 is not a multiple of 8 elements (16 bytes)"));
}

TEST_CASE("Without aligned, X and W need the alignment of their elements") {
  SkinnyGemm request = k_request;
  request.aligned = false;
  Bench bench(request);
  bench.args.x = moved(bench.args.x, 2);
  bench.args.w = moved(bench.args.w, 6);
  bench.args.x_stride = 17;
  bench.launch();
  CHECK(bench.kernel->launches == 1);
  CHECK(contains(refusal_with([](Args& a) { a.x = moved(a.x, 1); }, request), "is not aligned to 2 bytes"));
}

TEST_CASE("Rows that overlap are named") {
  CHECK(refusal_with([](Args& a) { a.x_stride = 8; }) ==
        "skinny_gemm: x_stride=8 makes rows of 16 elements overlap; give at least 16");
  CHECK(contains(refusal_with([](Args& a) { a.w_stride = 8; }), "w_stride=8 makes rows of 16"));
  CHECK(contains(refusal_with([](Args& a) { a.y_stride = 3; }), "y_stride=3 makes rows of 4"));
  CHECK(contains(refusal_with([](Args& a) { a.residual_stride = 3; }), "residual_stride=3 makes rows of 4"));
  CHECK(contains(refusal_with([](Args& a) { a.y_stride = -8; }), "y_stride=-8 makes rows of 4"));
  CHECK(contains(refusal_with([](Args& a) { a.x_stride = std::numeric_limits<std::int64_t>::min(); }),
                 "x_stride=-"));
}

TEST_CASE("Strides beyond the address space are named") {
  CHECK(contains(refusal_with([](Args& a) { a.x_stride = k_huge; }),
                 "x_stride=9223372036854775807 reaches past the address space"));
  CHECK(contains(refusal_with([](Args& a) { a.x_stride = k_huge - 7; }),
                 "x_stride=9223372036854775800 reaches past"));
  CHECK(contains(refusal_with([](Args& a) { a.w_stride = k_huge / 2 - 7; }), "w_stride="));
  CHECK(contains(refusal_with([](Args& a) { a.y_stride = k_huge / 4; }), "y_stride="));
  CHECK(contains(refusal_with([](Args& a) { a.residual_stride = k_huge; }), "residual_stride="));
}

TEST_CASE("Y must not overlap what is read") {
  const auto y_at = [](const void* place, std::ptrdiff_t bytes) {
    return [=](Args& a) { a.y = const_cast<unsigned char*>(moved(place, bytes)); };
  };
  const auto refusal = [&](auto operand, std::ptrdiff_t bytes) {
    Bench bench;
    y_at(operand(bench.args), bytes)(bench.args);
    return bench.refusal();
  };
  const auto x = [](const Args& a) { return a.x; };
  const auto w = [](const Args& a) { return a.w; };
  const auto bias = [](const Args& a) { return a.bias; };
  const auto residual = [](const Args& a) { return a.residual; };
  CHECK(contains(refusal(x, 0), " overlaps x=0x"));
  CHECK(contains(refusal(x, 3 * 16 * 2 - 2), " overlaps x=0x"));
  CHECK(contains(refusal(w, -22), " overlaps w=0x"));  // its last element is W's first
  CHECK(contains(refusal(w, 4 * 16 * 2 - 2), " overlaps w=0x"));
  CHECK(contains(refusal(bias, 8), " overlaps bias=0x"));
  CHECK(contains(refusal(residual, 2), " overlaps residual=0x"));
  CHECK(contains(refusal(residual, -2), " overlaps residual=0x"));
}

TEST_CASE("Y may touch what is read, and may be the residual itself") {
  const auto launches = [](auto change) {
    Bench bench;
    change(bench.args);
    bench.launch();
    return bench.kernel->launches == 1;
  };
  CHECK(launches([](Args& a) { a.y = const_cast<unsigned char*>(moved(a.x, 3 * 16 * 2)); }));
  CHECK(launches([](Args& a) { a.y = const_cast<unsigned char*>(moved(a.w, -24)); }));
  CHECK(launches([](Args& a) { a.residual = a.y; }));
  CHECK(launches([](Args& a) {
    a.residual = a.y;
    a.y_stride = a.residual_stride = 9;
  }));
  CHECK(contains(refusal_with([](Args& a) {
                   a.residual = a.y;
                   a.residual_stride = 9;
                 }),
                 " overlaps residual=0x"));
}

TEST_CASE("Y and what is read may be columns of one wider matrix") {
  // Rows of 4 floats each in a matrix of 8 columns: Y left, the residual right, and then the other way round.
  const SkinnyGemm request{.m = 3, .n = 4, .k = 16, .out = ElementType::f32, .residual = true};
  for (const bool y_left : {true, false}) {
    Bench bench(request);
    bench.args.bias = nullptr;
    bench.args.y = bench.memory + 2048 + (y_left ? 0 : 16);
    bench.args.residual = bench.memory + 2048 + (y_left ? 16 : 0);
    bench.args.y_stride = bench.args.residual_stride = 8;
    bench.launch();
    CHECK(bench.kernel->launches == 1);
  }
  // One column less between them, and they overlap.
  Bench bench(request);
  bench.args.bias = nullptr;
  bench.args.y = bench.memory + 2048;
  bench.args.residual = bench.memory + 2048 + 12;
  bench.args.y_stride = bench.args.residual_stride = 8;
  CHECK(test::contains(bench.refusal(), "y="));
  bench.args.residual = bench.memory + 2048 + 20;  // reaches into the next row
  CHECK(test::contains(bench.refusal(), "overlaps residual"));
}

TEST_CASE("Operands that the plan knows nothing of are refused") {
  SkinnyGemm request = k_request;
  request.bias = SkinnyGemmBiasType::none;
  CHECK(contains(refusal_with([](Args&) {}, request), "bias is given, but the plan was made with bias=none"));
  request = k_request;
  request.residual = false;
  CHECK(contains(refusal_with([](Args&) {}, request), "residual is given, but the plan was made without"));
}

TEST_CASE("A single row has no stride") {
  SkinnyGemm request = k_request;
  request.m = 1;
  Bench bench(request);
  bench.args.x_stride = 3;
  bench.args.y_stride = k_huge;
  bench.launch();
  CHECK(bench.kernel->last.x_stride == 16);
  CHECK(bench.kernel->last.y_stride == 4);
}

TEST_SUITE_END();

}  // namespace jitsmith
