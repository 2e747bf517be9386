#include <jitsmith/jit/nvrtc_compiler.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/jit/cubin_facts.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_diagnostics.hpp>
#include <jitsmith/jit/nvrtc_identity.hpp>
#include <jitsmith/jit/nvrtc_library.hpp>

#include <pthread.h>

namespace jitsmith {
namespace {

// NVRTC's parser recurses. By default it lifts the stack limit of the whole process during a compile, and two
// racing compiles can leave it lifted; it is told not to, and gets the 8 MiB that a main thread has.
constexpr std::size_t k_stack_bytes = std::size_t{8} << 20;

// Its front end is serial within a process: more threads than a few only take memory (about 100 MB each).
constexpr std::ptrdiff_t k_max_concurrent_compiles = 8;

std::ptrdiff_t concurrent_compiles() {
  const auto processors = static_cast<std::ptrdiff_t>(std::thread::hardware_concurrency());
  return std::clamp<std::ptrdiff_t>(processors, 1, k_max_concurrent_compiles);
}

class SlotGuard {
 public:
  explicit SlotGuard(std::counting_semaphore<>& slots) : slots_(slots) { slots_.acquire(); }
  ~SlotGuard() { slots_.release(); }
  SlotGuard(const SlotGuard&) = delete;
  SlotGuard& operator=(const SlotGuard&) = delete;

 private:
  std::counting_semaphore<>& slots_;
};

// Runs `work` to its end on a thread with a stack of k_stack_bytes; what it throws is thrown here.
void run_with_large_stack(const std::function<void()>& work) {
  struct Task {
    const std::function<void()>& work;
    std::exception_ptr failure;
  } task{work, nullptr};
  const auto body = [](void* argument) -> void* {
    auto& mine = *static_cast<Task*>(argument);
    try {
      mine.work();
    } catch (...) {
      mine.failure = std::current_exception();
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, k_stack_bytes);
  const int error = pthread_create(&thread, &attributes, body, &task);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    throw TransientCompileError(fmt::format("no thread could be started for a compile (error {})", error),
                                {});
  pthread_join(thread, nullptr);
  if (task.failure) std::rethrow_exception(task.failure);
}

// One program from creation to code.
class Compilation {
 public:
  Compilation(const NvrtcLibrary& library, const SpecializedSource& source, std::string arch,
              std::vector<std::string> options)
      : library_(library),
        api_(library.api()),
        source_(source),
        arch_(std::move(arch)),
        options_(std::move(options)) {}

  ~Compilation() { api_.destroy_program(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  Binary run() {
    create();
    std::vector<const char*> words;
    for (const auto& option : options_) words.push_back(option.c_str());
    const nvrtcResult result = api_.compile_program(program_, static_cast<int>(words.size()), words.data());
    read_log();
    check(result);

    Binary binary;
    const char* lowered_name = nullptr;
    check(api_.lowered_name(program_, source_.instantiation.c_str(), &lowered_name));
    std::size_t size = 0;
    check(api_.cubin_size(program_, &size));
    binary.code.resize(size);
    check(api_.cubin(program_, reinterpret_cast<char*>(binary.code.data())));
    binary.facts = facts_of_cubin(binary.code, log_, lowered_name);
    binary.log = std::move(log_);
    return binary;
  }

 private:
  void create() {
    std::vector<const char*> texts;
    std::vector<const char*> paths;
    for (const auto& header : source_.headers) {
      texts.push_back(header.text.str().c_str());
      paths.push_back(header.path.c_str());
    }
    check(api_.create_program(&program_, source_.main.text.str().c_str(), source_.main.path.c_str(),
                              static_cast<int>(texts.size()), texts.data(), paths.data()));
    check(api_.add_name_expression(program_, source_.instantiation.c_str()));
  }

  void read_log() {
    std::size_t size = 0;
    if (api_.log_size(program_, &size) != NVRTC_SUCCESS || size == 0) return;
    log_.resize(size);
    if (api_.log(program_, log_.data()) != NVRTC_SUCCESS) log_.clear();
    std::erase(log_, '\0');  // the terminator, and one more before what ptxas says of an error
  }

  void check(nvrtcResult result) const {
    if (result == NVRTC_SUCCESS) return;
    const std::string log = fmt::format("options: {}\n{}\n{}", fmt::join(options_, " "), log_,
                                        numbered_source_lines(log_, source_));
    switch (result) {
      case NVRTC_ERROR_OUT_OF_MEMORY:
      case NVRTC_ERROR_PROGRAM_CREATION_FAILURE:
      case NVRTC_ERROR_INTERNAL_ERROR:
        throw TransientCompileError(sentence("failed with {}", api_.error_string(result)), log);
      case NVRTC_ERROR_COMPILATION:
        throw CompileError(source_error(), log);
      case NVRTC_ERROR_INVALID_OPTION:
        throw CompileError(option_error(), log);
      case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        throw CompileError(
            fmt::format("the libnvrtc-builtins library that belongs to {} is missing or unusable ({}); "
                        "install it beside that file, or set JITSMITH_NVRTC to a whole NVRTC",
                        library_.path(), first_error_line(log_)),
            log);
      default:
        throw CompileError(sentence("failed with {} ({})", api_.error_string(result), first_error_line(log_)),
                           log);
    }
  }

  template <typename... Args>
  std::string sentence(fmt::format_string<Args...> what, Args&&... args) const {
    return fmt::format("compiling {} as {} for {} ", source_.main.path, source_.instantiation, arch_) +
           fmt::format(what, std::forward<Args>(args)...);
  }

  std::string source_error() const {
    const std::string rejected = name_expression_error(log_);
    if (rejected.empty()) return sentence("failed: {}", first_error_line(log_));
    return fmt::format("the instantiation {} of {} was rejected for {}: {}", source_.instantiation,
                       source_.main.path, arch_, rejected);
  }

  std::string option_error() const {
    if (log_.find("--gpu-architecture") == std::string::npos)
      return sentence("with NVRTC {} failed: {}", library_.version(), first_error_line(log_));
    return fmt::format(
        "NVRTC {} at {} does not know the architecture {} (it knows {}); use one of these, or install "
        "a newer NVRTC",
        library_.version(), library_.path(), arch_, fmt::join(library_.supported_archs(), ", "));
  }

  const NvrtcLibrary& library_;
  const NvrtcApi& api_;
  const SpecializedSource& source_;
  const std::string arch_;
  const std::vector<std::string> options_;
  nvrtcProgram program_ = nullptr;
  std::string log_;
};

}  // namespace

NvrtcCompiler::NvrtcCompiler(NvrtcSearch search, NvrtcOptions options)
    : search_(std::move(search)),
      options_(std::move(options)),
      slots_(std::make_unique<std::counting_semaphore<>>(concurrent_compiles())) {}

NvrtcCompiler::~NvrtcCompiler() = default;

std::vector<std::string> NvrtcCompiler::options(const std::string& arch) const {
  std::vector<std::string> options = {
      "--gpu-architecture=" + arch, "--std=c++17",
      "--fmad=false",  // contraction would make results depend on what is inlined where, and differ from the
                       // host target
      "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
      "--no-source-include",  // else a quoted #include reads the working directory, an input that no key
                              // could hold
      "--modify-stack-limit=false",
      "--ptxas-options=--verbose",  // reports spills
  };
  if (options_.line_info) options.push_back("--generate-line-info");
  options.insert(options.end(), options_.extra_options.begin(), options_.extra_options.end());
  return options;
}

std::string NvrtcCompiler::library_path() {
  const std::lock_guard lock(mutex_);
  if (!path_) path_ = locate_nvrtc(search_);
  return *path_;
}

std::string NvrtcCompiler::identity() {
  const std::string path = library_path();
  const std::lock_guard lock(mutex_);
  if (!identity_) identity_ = nvrtc_identity(path, search_.append_flags);
  return *identity_;
}

const NvrtcLibrary& NvrtcCompiler::loaded() {
  const std::string path = library_path();
  const std::lock_guard lock(mutex_);
  if (library_) return *library_;
  auto library = std::make_unique<NvrtcLibrary>(path);
  // The keys made so far name the file that was there then: it must be the one that was loaded.
  const std::string now = nvrtc_identity(path, search_.append_flags);
  const std::optional<std::string> before = std::exchange(identity_, now);
  library_ = std::move(library);
  if (before && *before != now)
    throw TransientCompileError(
        fmt::format(
            "NVRTC was replaced while this program ran ({} became {}), so that what it compiles belongs "
            "under another key; ask for the kernel again",
            *before, now),
        {});
  return *library_;
}

std::counting_semaphore<>& NvrtcCompiler::slots() {
  const std::lock_guard lock(mutex_);
  if (process_.is_new_process()) slots_ = std::make_unique<std::counting_semaphore<>>(concurrent_compiles());
  return *slots_;
}

std::string NvrtcCompiler::version() {
  return loaded().version();
}

std::vector<std::string> NvrtcCompiler::supported_archs() {
  return loaded().supported_archs();
}

Binary NvrtcCompiler::compile(const SpecializedSource& source, const std::string& arch) {
  const SlotGuard slot(slots());
  Binary binary;
  run_with_large_stack([&] {
    const NvrtcLibrary& library = loaded();
    std::vector<std::string> words = options(arch);
    if (library.at_least(12, 9)) {
      // Not in options(): which of them exist follows from the identity. The seed makes names of internal
      // linkage equal in every process; NVRTC's own cache of results would hide the report of ptxas.
      words.push_back("--frandom-seed=jitsmith");
      words.push_back("--no-cache");
    }
    binary = Compilation(library, source, arch, std::move(words)).run();
  });
  return binary;
}

}  // namespace jitsmith
