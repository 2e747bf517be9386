#include <jitsmith/jit/binary.hpp>

#include <doctest/doctest.h>

namespace jitsmith {
namespace {

const KernelFacts k_facts{.lowered_name = "_ZN1k",
                          .registers = 40,
                          .static_shared_bytes = 1024,
                          .local_bytes = 8,
                          .spill_store_bytes = 4,
                          .spill_load_bytes = 12,
                          .param_bytes = {88, 4, 4294967295}};

const std::string k_text =
    "lowered_name=_ZN1k\nregisters=40\nstatic_shared_bytes=1024\nlocal_bytes=8\nspill_store_bytes=4\n"
    "spill_load_bytes=12\nparam_bytes=88,4,4294967295\n";

std::string changed(std::string_view from, std::string_view to) {
  std::string text = k_text;
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_SUITE_BEGIN("KernelFacts");

TEST_CASE("Facts are stored as this text") {
  CHECK(to_text(k_facts) == k_text);
}

TEST_CASE("Facts survive the way through text") {
  CHECK(facts_from_text(k_text) == k_facts);
  KernelFacts none = k_facts;
  none.param_bytes.clear();
  CHECK(facts_from_text(to_text(none)) == none);
  CHECK(facts_from_text(to_text(KernelFacts{})) == KernelFacts{});
}

TEST_CASE("Text of another shape is refused") {
  CHECK_FALSE(facts_from_text(""));
  CHECK_FALSE(facts_from_text(k_text + "x"));
  CHECK_FALSE(facts_from_text(k_text + k_text));
  CHECK_FALSE(facts_from_text(changed("registers=40\n", "")));
  CHECK_FALSE(facts_from_text(changed("registers=40", "registers=-1")));
  CHECK_FALSE(facts_from_text(changed("registers=40", "registers=")));
  CHECK_FALSE(facts_from_text(changed("registers=40", "registers=40 ")));
  CHECK_FALSE(facts_from_text(changed("registers=40", "registers=4294967296")));
  CHECK_FALSE(facts_from_text(changed("registers", "register")));
  CHECK_FALSE(facts_from_text(changed("88,4,", "88,,")));
  CHECK_FALSE(facts_from_text(changed("88,4,4294967295", "88,")));
  CHECK_FALSE(facts_from_text(changed("88,4,4294967295", ",88")));
}

TEST_CASE("Text cut short anywhere is refused") {
  for (std::size_t size = 0; size < k_text.size(); ++size)
    CHECK_FALSE(facts_from_text(std::string_view(k_text).substr(0, size)));
}

TEST_SUITE_END();

}  // namespace jitsmith
