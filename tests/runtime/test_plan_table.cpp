#include <jitsmith/runtime/plan_table.hpp>

#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/runtime/ops/skinny_gemm.hpp>

namespace jitsmith {
namespace {

std::shared_ptr<const PlanState> some_plan() {
  return std::make_shared<const PlanState>();
}

const SkinnyGemm k_request{.m = 2, .n = 64, .k = 128};
const int k_devices[2] = {};

PlanKey key_of(const SkinnyGemm& request, int device = 0) {
  return plan_key(request, &k_devices[device]);
}

}  // namespace

TEST_SUITE_BEGIN("PlanTable [tsan]");

TEST_CASE("Equal requests have equal keys, and any changed field another") {
  CHECK(key_of(k_request) == key_of(SkinnyGemm(k_request)));
  CHECK(key_of(k_request).hash() == key_of(SkinnyGemm(k_request)).hash());
  std::vector<PlanKey> keys{key_of(k_request), key_of(k_request, 1)};
  const auto with = [&keys](auto change) {
    SkinnyGemm request = k_request;
    change(request);
    keys.push_back(key_of(request));
  };
  with([](SkinnyGemm& r) { r.m = 3; });
  with([](SkinnyGemm& r) { r.n = 65; });
  with([](SkinnyGemm& r) { r.k = 136; });
  with([](SkinnyGemm& r) { r.out = ElementType::f32; });
  with([](SkinnyGemm& r) { r.bias = SkinnyGemmBiasType::f32; });
  with([](SkinnyGemm& r) { r.residual = true; });
  with([](SkinnyGemm& r) { r.aligned = false; });
  with([](SkinnyGemm& r) { r.batch_invariant = true; });
  with([](SkinnyGemm& r) { r.x_format = SkinnyGemmFormat::f32; });
  with([](SkinnyGemm& r) { r.w_format = SkinnyGemmFormat::f32; });
  with([](SkinnyGemm& r) { std::swap(r.m, r.n); });
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < keys.size(); ++j) CHECK((keys[i] == keys[j]) == (i == j));
}

TEST_CASE("The generic form of a request says the same") {
  const Params params = params_of(SkinnyGemm{.m = 1,
                                             .n = 2,
                                             .k = 8,
                                             .out = ElementType::f32,
                                             .bias = SkinnyGemmBiasType::bf16,
                                             .w_format = SkinnyGemmFormat::mxfp8});
  CHECK(to_string(params) ==
        "m=1,n=2,k=8,out=f32,bias=bf16,residual=false,aligned=true,batch_invariant=false,programmatic=false,"
        "x_format=bf16,w_format=mxfp8");
  const SkinnyGemm back = skinny_gemm_from(params);
  CHECK(params_of(back) == params);
}

TEST_CASE("What was inserted is found, and nothing else") {
  PlanTable table;
  CHECK(table.find(key_of(k_request)) == nullptr);
  const auto plan = some_plan();
  CHECK(table.insert(key_of(k_request), plan) == plan);
  REQUIRE(table.find(key_of(k_request)) != nullptr);
  CHECK(*table.find(key_of(k_request)) == plan);
  CHECK(table.find(key_of(k_request, 1)) == nullptr);
}

TEST_CASE("The first plan of a key stays") {
  PlanTable table;
  const auto first = some_plan();
  table.insert(key_of(k_request), first);
  CHECK(table.insert(key_of(k_request), some_plan()) == first);
  CHECK(*table.find(key_of(k_request)) == first);
}

TEST_CASE("More plans than buckets are all found") {
  PlanTable table;
  std::vector<std::shared_ptr<const PlanState>> plans;
  for (std::int64_t n = 0; n < 3000; ++n)
    plans.push_back(table.insert(key_of({.m = 1, .n = n, .k = 8}), some_plan()));
  for (std::int64_t n = 0; n < 3000; ++n) {
    const auto* found = table.find(key_of({.m = 1, .n = n, .k = 8}));
    REQUIRE(found != nullptr);
    REQUIRE(*found == plans[static_cast<std::size_t>(n)]);
  }
}

TEST_CASE("A place in the table never moves") {
  PlanTable table;
  const auto* place = &table.insert(key_of(k_request), some_plan());
  for (std::int64_t n = 0; n < 3000; ++n) table.insert(key_of({.m = 1, .n = n, .k = 8}), some_plan());
  CHECK(table.find(key_of(k_request)) == place);
}

TEST_CASE("Threads that insert and look up agree on one plan a key") {
  PlanTable table;
  constexpr std::int64_t k_keys = 200;
  std::vector<std::vector<const PlanState*>> seen(8, std::vector<const PlanState*>(k_keys));
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&table, &mine] {
      for (std::int64_t n = 0; n < k_keys; ++n) {
        const PlanKey key = key_of({.m = 1, .n = n, .k = 8});
        const auto* found = table.find(key);
        mine[static_cast<std::size_t>(n)] =
            found != nullptr ? found->get() : table.insert(key, some_plan()).get();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) CHECK(mine == seen.front());
}

TEST_SUITE_END();

}  // namespace jitsmith
