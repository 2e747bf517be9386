#include <jitsmith/runtime/options.hpp>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/jit/error.hpp>

#include "support/message_of.hpp"

namespace jitsmith {
namespace {

using test::message_of;

constexpr const char* k_names[] = {"JITSMITH_TARGET",    "JITSMITH_DEVICE",   "JITSMITH_DRIVER",
                                   "JITSMITH_POLICY",    "JITSMITH_CACHE",    "JITSMITH_CACHE_DIR",
                                   "JITSMITH_NVRTC",     "JITSMITH_HOST_CXX", "JITSMITH_HOST_SEED",
                                   "JITSMITH_TEMPLATES", "JITSMITH_TABLE",    "JITSMITH_FORCE"};

// The environment with these of our variables and no other; put back at the end.
class Environment {
 public:
  using Variables = std::vector<std::pair<const char*, const char*>>;

  explicit Environment(const Variables& set) {
    for (const char* name : k_names) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value != nullptr ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

Options options_with(const char* name, const char* value) {
  const Environment environment(Environment::Variables{{name, value}});
  return Options::from_environment();
}

std::string refusal(const char* name, const char* value) {
  return message_of<InvalidRequest>([&] { options_with(name, value); });
}

}  // namespace

TEST_SUITE_BEGIN("Options");

TEST_CASE("An environment that says nothing gives the defaults") {
  const Environment environment(Environment::Variables{});
  const Options options = Options::from_environment();
  CHECK(options.executor == Executor::cuda);
  CHECK(options.policy == Policy::compile);
  CHECK_FALSE(options.driver_path);
  CHECK(options.device == 0);
  CHECK(options.host_seed == 0);
  CHECK(options.template_folder.empty());
  CHECK(options.tuning_table.empty());
  CHECK(options.forced.empty());
  CHECK(options.cache.enabled);
}

TEST_CASE("Empty variables count as unset") {
  for (const char* name : k_names) {
    CAPTURE(name);
    CHECK_NOTHROW(options_with(name, ""));
  }
  CHECK_FALSE(options_with("JITSMITH_DRIVER", "").driver_path);
}

TEST_CASE("Each variable reaches its option") {
  CHECK(options_with("JITSMITH_TARGET", "host").executor == Executor::host);
  CHECK(options_with("JITSMITH_TARGET", "cuda").executor == Executor::cuda);
  CHECK(options_with("JITSMITH_POLICY", "cached_only").policy == Policy::cached_only);
  CHECK(options_with("JITSMITH_POLICY", "compile").policy == Policy::compile);
  CHECK(options_with("JITSMITH_DRIVER", "/x/libcuda.so").driver_path == "/x/libcuda.so");
  CHECK(options_with("JITSMITH_DEVICE", "3").device == 3);
  CHECK(options_with("JITSMITH_HOST_SEED", "18446744073709551615").host_seed == 18446744073709551615u);
  CHECK(options_with("JITSMITH_CACHE_DIR", "/x").cache.environment_dir == "/x");
  CHECK_FALSE(options_with("JITSMITH_CACHE", "0").cache.enabled);
  CHECK(options_with("JITSMITH_NVRTC", "/x/libnvrtc.so").nvrtc.environment_path == "/x/libnvrtc.so");
  CHECK(options_with("JITSMITH_HOST_CXX", "clang++").host_compiler.compiler == "clang++");
  CHECK(options_with("JITSMITH_TEMPLATES", "/t").template_folder == "/t");
  CHECK(options_with("JITSMITH_TABLE", "/t.jsonl").tuning_table == "/t.jsonl");
}

TEST_CASE("Forced variants are a list by op") {
  const Options options =
      options_with("JITSMITH_FORCE", "skinny_gemm=simt:threads=128,tile_n=4;offset=plain");
  CHECK(options.forced == std::map<std::string, std::string>{{"skinny_gemm", "simt:threads=128,tile_n=4"},
                                                             {"offset", "plain"}});
}

TEST_CASE("Values without a meaning are refused, naming the variable and the value") {
  CHECK(refusal("JITSMITH_TARGET", "gpu") ==
        "JITSMITH_TARGET=gpu is not allowed; set it to cuda or host, or unset it");
  CHECK(refusal("JITSMITH_POLICY", "background") ==
        "JITSMITH_POLICY=background is not allowed; set it to compile or cached_only, or unset it");
  for (const char* value : {"-1", "1x", "one", "99999999999", " 1", "0x1"})
    CHECK(refusal("JITSMITH_DEVICE", value) ==
          "JITSMITH_DEVICE=" + std::string(value) + " is not a number of at least 0; set one or unset it");
  CHECK(refusal("JITSMITH_HOST_SEED", "-1").starts_with("JITSMITH_HOST_SEED=-1 is not a number"));
  for (const char* value : {"simt", "=simt", "skinny_gemm=", "a=b;;", "a=b;c"})
    CHECK(refusal("JITSMITH_FORCE", value).starts_with("JITSMITH_FORCE item '"));
}

TEST_SUITE_END();

}  // namespace jitsmith
