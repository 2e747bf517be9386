#include <jitsmith/jit/key_fields.hpp>

#include <random>
#include <string>

#include <doctest/doctest.h>

#include <jitsmith/jit/key.hpp>

namespace jitsmith {
namespace {

std::string spell(const std::string& name, const std::string& value) {
  return name + "[" + std::to_string(value.size()) + "]=" + value + "\n";
}

Key key_of(const std::string& text) {
  return {text, digest_of(text)};
}

}  // namespace

TEST_SUITE_BEGIN("KeyFields");

TEST_CASE("Fields come in the order of the text, whatever bytes their values have") {
  const std::string text = spell("format", "1") + spell("parameter.a", "int 3\nb[1]=x\n") +
                           spell("header.odd[name].h", "]=") + spell("empty", "") +
                           spell("toolchain", std::string("x\0y", 3));
  const KeyFields fields = key_fields(text);
  REQUIRE(fields.size() == 5);
  CHECK(fields[0] == KeyField{"format", "1"});
  CHECK(fields[1] == KeyField{"parameter.a", "int 3\nb[1]=x\n"});
  CHECK(fields[2] == KeyField{"header.odd[name].h", "]="});
  CHECK(fields[3] == KeyField{"empty", ""});
  CHECK(fields[4] == KeyField{"toolchain", std::string_view("x\0y", 3)});
  CHECK(find_field(fields, "format") == "1");
  CHECK_FALSE(find_field(fields, "nonsense"));
}

TEST_CASE("Of a damaged text the fields before the fault are read, and nothing else happens") {
  const std::string text = spell("format", "1") + spell("template", "mine/k.cu") + spell("toolchain", "gcc");
  for (std::size_t length = 0; length < text.size(); ++length)
    CHECK(key_fields(text.substr(0, length)).size() < 3);
  for (const char* wrong : {"a[2]=x\n", "a[-1]=x\n", "a[x]=x\n", "a[1=x\n", "a]=x\n", "a[1]=xy\n", "\n",
                            "a[18446744073709551615]=x\n", "a[99999999999999999999]=x\n"})
    CHECK_MESSAGE(key_fields(spell("format", "1") + wrong).size() == 1, wrong);
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    for (const KeyField& field : key_fields(damaged)) CHECK(field.value.size() <= damaged.size());
  }
}

TEST_CASE("Differences name each field that is not the same, and what only one side has") {
  const std::string wanted = spell("template", "a.cu") + spell("parameter.threads", "int 64") +
                             spell("option.0", "-a") + spell("toolchain", "one");
  CHECK(differences(key_fields(wanted), key_fields(wanted)).empty());
  const std::string had = spell("template", "a.cu") + spell("parameter.threads", "int 128") +
                          spell("option.1", "-b") + spell("toolchain", "two");
  const KeyFields left = key_fields(wanted), right = key_fields(had);
  const auto found = differences(left, right);
  REQUIRE(found.size() == 4);
  CHECK(to_string(found[0]) == "parameter.threads (128, not 64)");
  CHECK(to_string(found[1]) == "option.0 (absent, not -a)");
  CHECK(to_string(found[2]) == "toolchain");
  CHECK(to_string(found[3]) == "option.1 (-b, not absent)");
}

TEST_CASE("A toolchain that is not known differs from none") {
  const std::string wanted = spell("template", "a.cu") + spell("toolchain", "");
  const std::string had = spell("template", "a.cu") + spell("toolchain", "gcc");
  CHECK(differences(key_fields(wanted), key_fields(had)).empty());
  CHECK(differences(key_fields(had), key_fields(wanted)).size() == 1);
}

TEST_CASE("Another toolchain changes the last field and the digest, and nothing before") {
  const std::string before = spell("source", "toolchain[3]=gcc\n") + spell("option.0", "toolchain[1]=x");
  const Key key = key_of(before + spell("toolchain", "gcc"));
  const Key other = with_toolchain(key, "clang\n17");
  CHECK(other.text == before + spell("toolchain", "clang\n17"));
  CHECK(other.digest == digest_of(other.text));
  CHECK(with_toolchain(other, "gcc").text == key.text);
  CHECK(with_toolchain(key, "").text == before + "toolchain[0]=\n");
}

TEST_SUITE_END();

}  // namespace jitsmith
