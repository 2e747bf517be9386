#include <jitsmith/runtime/options.hpp>

#include <chrono>
#include <cstdint>
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

constexpr const char* k_names[] = {"JITSMITH_TARGET",          "JITSMITH_DEVICE",
                                   "JITSMITH_DRIVER",          "JITSMITH_POLICY",
                                   "JITSMITH_CACHE",           "JITSMITH_CACHE_DIR",
                                   "JITSMITH_NVRTC",           "JITSMITH_HOST_CXX",
                                   "JITSMITH_HOST_SEED",       "JITSMITH_TEMPLATES",
                                   "JITSMITH_TABLE",           "JITSMITH_FORCE",
                                   "JITSMITH_CACHE_MAX_BYTES", "JITSMITH_CACHE_MAX_ENTRIES",
                                   "JITSMITH_LOCK_WAIT_MS",    "JITSMITH_BUNDLES",
                                   "JITSMITH_REMOTE",          "JITSMITH_REMOTE_MODE",
                                   "JITSMITH_RECORD",          "JITSMITH_COLD"};

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
  CHECK(options.cache_limits.max_bytes == std::uint64_t{1} << 30);
  CHECK(options.cache_limits.max_entries == 65'536);
  CHECK(options.lock_wait == std::chrono::seconds(30));
  CHECK(options.bundles.empty());
  CHECK(options.remote.url.empty());
  CHECK(options.remote.mode == RemoteMode::read_write);
  CHECK(options.record.empty());
  CHECK_FALSE(options.cold);
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

TEST_CASE("The limits, the lock and the tiers of the cache are options too") {
  const auto max_bytes = [](const char* value) {
    return options_with("JITSMITH_CACHE_MAX_BYTES", value).cache_limits.max_bytes;
  };
  CHECK(max_bytes("0") == 0);
  CHECK(max_bytes("1000") == 1000);
  CHECK(max_bytes("2K") == 2048);
  CHECK(max_bytes("512M") == 512u << 20);
  CHECK(max_bytes("3G") == std::uint64_t{3} << 30);
  CHECK(max_bytes("1T") == std::uint64_t{1} << 40);
  CHECK(max_bytes("18446744073709551615") == ~std::uint64_t{0});
  CHECK(max_bytes("16777215T") == std::uint64_t{16777215} << 40);
  CHECK(options_with("JITSMITH_CACHE_MAX_ENTRIES", "12").cache_limits.max_entries == 12);
  CHECK(options_with("JITSMITH_LOCK_WAIT_MS", "250").lock_wait == std::chrono::milliseconds(250));
  CHECK(options_with("JITSMITH_LOCK_WAIT_MS", "0").lock_wait.count() == 0);
  CHECK(options_with("JITSMITH_LOCK_WAIT_MS", "9223372036854775807").lock_wait == std::chrono::hours(24));
  CHECK(options_with("JITSMITH_BUNDLES", "/a:/b/c.jsb").bundles ==
        std::vector<std::string>{"/a", "/b/c.jsb"});
  CHECK(options_with("JITSMITH_BUNDLES", ":/a::/b:").bundles == std::vector<std::string>{"/a", "/b"});
  CHECK(options_with("JITSMITH_REMOTE", "redis://h").remote.url == "redis://h");
  CHECK(options_with("JITSMITH_REMOTE_MODE", "read_only").remote.mode == RemoteMode::read_only);
  CHECK(options_with("JITSMITH_RECORD", "/r.json").record == "/r.json");
  CHECK(options_with("JITSMITH_COLD", "1").cold);
  CHECK_FALSE(options_with("JITSMITH_COLD", "0").cold);
}

TEST_CASE("A cache has what the options say, and nothing in the cold mode") {
  Options options;
  options.cache.explicit_dir = "/c";
  options.cache_limits.max_entries = 3;
  options.lock_wait = std::chrono::milliseconds(5);
  options.bundles = {"/a"};
  options.remote.url = "redis://h";
  const CacheOptions warm = options.cache_options();
  CHECK(warm.directory.explicit_dir == "/c");
  CHECK(warm.limits.max_entries == 3);
  CHECK(warm.lock_wait.count() == 5);
  CHECK(warm.bundles == options.bundles);
  CHECK(warm.remote.url == "redis://h");
  options.cold = true;
  const CacheOptions cold = options.cache_options();
  CHECK_FALSE(cold.directory.enabled);
  CHECK(cold.bundles.empty());
  CHECK(cold.remote.url.empty());
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
  for (const char* value : {"-1", "1X", "M", "1.5G", "1 G", "1GB", "0x10", "18446744073709551616",
                            "16777216T", "18014398509481984K"})
    CHECK(refusal("JITSMITH_CACHE_MAX_BYTES", value) ==
          "JITSMITH_CACHE_MAX_BYTES=" + std::string(value) +
              " is not a number of bytes, perhaps with K, M, G or T after it; set one or unset it");
  for (const char* name : {"JITSMITH_CACHE_MAX_ENTRIES", "JITSMITH_LOCK_WAIT_MS"})
    for (const char* value : {"-1", "1s", "many", "99999999999999999999"})
      CHECK(refusal(name, value).starts_with(std::string(name) + "=" + value + " is not a number"));
  CHECK(refusal("JITSMITH_REMOTE_MODE", "write") ==
        "JITSMITH_REMOTE_MODE=write is not allowed; set it to read_write or read_only, or unset it");
  CHECK(refusal("JITSMITH_COLD", "yes") == "JITSMITH_COLD=yes is not allowed; set it to 0 or 1, or unset it");
  for (const char* value : {"simt", "=simt", "skinny_gemm=", "a=b;;", "a=b;c"})
    CHECK(refusal("JITSMITH_FORCE", value).starts_with("JITSMITH_FORCE item '"));
}

TEST_SUITE_END();

}  // namespace jitsmith
