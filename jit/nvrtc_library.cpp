#include <jitsmith/jit/nvrtc_library.hpp>

#include <utility>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_identity.hpp>

#include <dlfcn.h>

namespace jitsmith {
namespace {

constexpr int k_oldest_major = 12;
constexpr int k_oldest_minor = 4;

// Architecture-specific code ("sm_90a") exists from Hopper on.
constexpr int k_first_specific_arch = 90;

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

template <typename Function>
void require(void* library, const std::string& path, const char* name, Function& function) {
  resolve(library, name, function);
  if (function == nullptr)
    throw CompileError(
        fmt::format("{} is not a usable NVRTC: it has no function {}; install NVRTC {}.{} or newer", path,
                    name, k_oldest_major, k_oldest_minor),
        {});
}

}  // namespace

NvrtcLibrary::NvrtcLibrary(const std::string& path) : path_(path) {
  // NVRTC opens its builtins by their bare name. Where the loader does not know their folder, as with the
  // Python wheels, it finds them only when they are loaded already.
  for (const std::string& builtins : nvrtc_builtins_beside(path))
    ::dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
  // RTLD_LOCAL: a program may hold another NVRTC, of its own, at the same time.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw CompileError(
        fmt::format(
            "NVRTC could not be loaded: {}; reinstall it, or set JITSMITH_NVRTC to the path of another one",
            reason != nullptr ? reason : path),
        {});
  }
  require(library, path, "nvrtcVersion", api_.version);
  require(library, path, "nvrtcGetErrorString", api_.error_string);
  require(library, path, "nvrtcCreateProgram", api_.create_program);
  require(library, path, "nvrtcDestroyProgram", api_.destroy_program);
  require(library, path, "nvrtcAddNameExpression", api_.add_name_expression);
  require(library, path, "nvrtcCompileProgram", api_.compile_program);
  require(library, path, "nvrtcGetProgramLogSize", api_.log_size);
  require(library, path, "nvrtcGetProgramLog", api_.log);
  require(library, path, "nvrtcGetLoweredName", api_.lowered_name);
  require(library, path, "nvrtcGetCUBINSize", api_.cubin_size);
  require(library, path, "nvrtcGetCUBIN", api_.cubin);
  resolve(library, "nvrtcGetNumSupportedArchs", api_.num_supported_archs);
  resolve(library, "nvrtcGetSupportedArchs", api_.supported_archs);

  if (api_.version(&major_, &minor_) != NVRTC_SUCCESS || !at_least(k_oldest_major, k_oldest_minor))
    throw CompileError(fmt::format("{} is NVRTC {}, but jitsmith needs {}.{} or newer", path, version(),
                                   k_oldest_major, k_oldest_minor),
                       {});
}

std::string NvrtcLibrary::version() const {
  return fmt::format("{}.{}", major_, minor_);
}

bool NvrtcLibrary::at_least(int major, int minor) const {
  return std::pair(major_, minor_) >= std::pair(major, minor);
}

std::vector<std::string> NvrtcLibrary::supported_archs() const {
  int count = 0;
  if (api_.num_supported_archs == nullptr || api_.supported_archs == nullptr ||
      api_.num_supported_archs(&count) != NVRTC_SUCCESS || count <= 0)
    return {};
  std::vector<int> numbers(static_cast<std::size_t>(count));
  if (api_.supported_archs(numbers.data()) != NVRTC_SUCCESS) return {};
  std::vector<std::string> archs;
  for (const int number : numbers) {
    archs.push_back(fmt::format("sm_{}", number));
    if (number >= k_first_specific_arch) archs.push_back(fmt::format("sm_{}a", number));
  }
  return archs;
}

}  // namespace jitsmith
