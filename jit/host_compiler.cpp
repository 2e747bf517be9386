#include <jitsmith/jit/host_compiler.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/jit/child_process.hpp>
#include <jitsmith/jit/elf.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/nvrtc_diagnostics.hpp>
#include <jitsmith/jit/temp_directory.hpp>
#include <jitsmith/jit/virtual_path.hpp>

namespace jitsmith {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_symbol = "jitsmith_host_kernel";
// Beside the sources, so that messages name them by their virtual paths.
constexpr std::string_view k_driver = "jitsmith_host_driver.cpp";
constexpr std::string_view k_params_section = "jitsmith_params";

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// A compiler cache poses as the compiler by its name; its own identity says nothing about the code that comes
// out, and what it would cache is cached here anyway.
bool is_launcher(const fs::path& path) {
  std::error_code error;
  const std::string name = fs::canonical(path, error).filename();
  constexpr std::array<std::string_view, 4> k_launchers{"ccache", "sccache", "distcc", "icecc"};
  return std::ranges::find(k_launchers, name) != k_launchers.end();
}

std::optional<fs::path> find_on(std::string_view search_path, const std::string& name) {
  while (!search_path.empty()) {
    const std::size_t end = std::min(search_path.find(':'), search_path.size());
    const fs::path candidate = fs::path(search_path.substr(0, end)) / name;
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
    if (candidate.is_absolute() && is_program(candidate) && !is_launcher(candidate)) return candidate;
  }
  return std::nullopt;
}

// Empty when there is no such file.
std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream && errno != ENOENT)
    throw TransientCompileError(
        fmt::format("cannot read {}: {}; try again", path.string(), std::strerror(errno)), {});
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Whether a program that could not be started may be startable next time: memory, processes and descriptors
// come and go.
bool may_pass(const std::error_code& error) {
  constexpr std::array k_staying{ENOENT, ENOTDIR, EACCES, EPERM, ENOEXEC, ELOOP, E2BIG};
  return std::ranges::find(k_staying, error.value()) == k_staying.end();
}

// What the compiler says when the folder of its temporary files is full.
constexpr std::array<std::string_view, 2> k_no_room{"No space left on device", "Disk quota exceeded"};

bool says(const ChildResult& result, std::span<const std::string_view> sentences) {
  return std::ranges::any_of(
      sentences, [&](std::string_view words) { return result.output.find(words) != std::string::npos; });
}

// Whether the compiler failed for something else than its input. Its driver ends as after any error when one
// of its passes is killed or the disk is full, but says so (in English: LC_ALL=C). A source that contains
// such words is compiled once more often than needed.
bool may_pass(const ChildResult& result) {
  constexpr std::array<std::string_view, 6> k_passing{
      "signal terminated program", "unable to execute command",        "out of memory allocating",
      "Cannot allocate memory",    "Resource temporarily unavailable", "Too many open files"};
  return result.killed || says(result, k_passing) || says(result, k_no_room);
}

// The names of its files below the temporary directory, which nobody knows by its name.
void erase_all(std::string& text, const std::string& part) {
  for (std::size_t place; (place = text.find(part)) != std::string::npos;) text.erase(place, part.size());
}

// Checked before the code is handed out, for it is stored before it is ever loaded: a wrong one would be
// served again and again.
void check_exports_kernel(const std::vector<std::byte>& code) {
  const auto elf = ElfView::parse(code);
  if (!elf || !elf->exports(k_symbol))
    throw CompileError(
        fmt::format("the host compiler's output does not export {}; is it an ELF64 shared object, made of "
                    "the source that it was given?",
                    k_symbol),
        {});
}

std::vector<std::uint32_t> param_bytes(const std::vector<std::byte>& code) {
  const auto elf = ElfView::parse(code);
  const auto section = elf ? elf->section(k_params_section) : std::nullopt;
  if (!section || section->bytes.size() < sizeof(std::uint32_t))
    throw CompileError("the host compiler's output lists no kernel parameters; is it an ELF64 shared object?",
                       {});
  // One more element than parameters, so that the array is never empty.
  std::vector<std::uint32_t> sizes(section->bytes.size() / sizeof(std::uint32_t));
  std::memcpy(sizes.data(), section->bytes.data(), sizes.size() * sizeof(std::uint32_t));
  sizes.pop_back();
  return sizes;
}

// What a failed compile is told by, as NvrtcCompiler tells it.
std::string sentence_of(const SpecializedSource& source, const std::string& arch, const std::string& compiler,
                        const ChildResult& result) {
  const std::string error = first_error_line(result.output);
  if (error.starts_with(k_driver)) {  // not the template's own lines: what they are asked for
    constexpr std::string_view k_marker = "error: ";
    return fmt::format("the instantiation {} of {} was rejected for {}: {}", source.instantiation,
                       source.main.path, arch, error.substr(error.find(k_marker) + k_marker.size()));
  }
  const std::string failed =
      fmt::format("compiling {} as {} for {} failed: ", source.main.path, source.instantiation, arch);
  if (result.killed || !reports_error(result.output))
    return failed + fmt::format("{} ended with {} ({})", compiler, result.ending, error);
  return failed + error;
}

}  // namespace

HostCompiler::HostCompiler(HostCompilerOptions options) : options_(std::move(options)) {}

std::string HostCompiler::compiler_path() const {
  std::vector<std::string> names{"c++", "g++", "clang++"};
  if (!options_.compiler.empty()) names = {options_.compiler};
  for (const std::string& name : names) {
    if (name.find('/') == std::string::npos) {
      if (const auto found = find_on(options_.search_path, name)) return found->string();
    } else if (is_program(name)) {
      return fs::absolute(name).string();
    }
  }
  throw CompileError(
      fmt::format("no C++ compiler for the host target: searched {} for {}; install g++ or clang++, or "
                  "name one by JITSMITH_HOST_CXX or HostCompilerOptions::compiler",
                  options_.search_path, fmt::join(names, ", ")),
      {});
}

std::string HostCompiler::identity_now() const {
  const fs::path path = fs::canonical(compiler_path());
  // The driver and the compiler proper come from one package build, so the driver's build-id stands for both.
  const auto build_id = build_id_of_file(path.string());
  return fmt::format("{} {}", path.filename().string(),
                     build_id ? "build-id " + *build_id : "xxh3 " + digest_of(read_file(path)).hex());
}

std::string HostCompiler::identity() {
  const std::lock_guard lock(mutex_);
  if (identity_.empty()) identity_ = identity_now();
  return identity_;
}

// The key of what was just compiled names a compiler: it must be the one that was run.
void HostCompiler::check_identity() {
  const std::string now = identity_now();
  const std::lock_guard lock(mutex_);
  if (identity_.empty() || identity_ == now) return;
  const std::string before = std::exchange(identity_, now);
  throw TransientCompileError(
      fmt::format(
          "the host compiler was replaced while this program ran ({} became {}), so that what it compiles "
          "belongs under another key; ask for the kernel again",
          before, now),
      {});
}

std::vector<std::string> HostCompiler::options(const std::string& /*arch*/) const {
  std::vector<std::string> options{
      "-std=c++20", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-fast-math", "-fvisibility=hidden"};
#ifdef JITSMITH_SANITIZE
  // Line tables, so that a report names the line of the template.
  for (const char* option :
       {"-fsanitize=" JITSMITH_SANITIZE, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"})
    options.emplace_back(option);
#endif
  return options;
}

Binary HostCompiler::compile(const SpecializedSource& source, const std::string& arch) {
  const std::string compiler = compiler_path();
  const TempDirectory directory(options_.temp_directory);
  check_virtual_path(source.main.path);
  directory.write("source/" + source.main.path, source.main.text);
  for (const SourceFile& header : source.headers) {
    check_virtual_path(header.path);
    directory.write("source/" + header.path, header.text);
  }
  directory.write(
      "source/" + std::string(k_driver),
      fmt::format("#include \"{}\"\nJITSMITH_HOST_EXPORT({})\n", source.main.path, source.instantiation));

  const std::vector<std::string> code_options = options(arch);
  ChildProcess child{.argv = {compiler}, .environment = {}, .directory = directory.path() + "/source"};
  child.argv.insert(child.argv.end(), code_options.begin(), code_options.end());
  // What follows has no influence on the code: it keeps the name of the directory out of it.
  for (const std::string& option :
       {std::string("-frandom-seed=jitsmith"), "-ffile-prefix-map=" + directory.path() + "=.",
        std::string("-pipe"), std::string("-iquote"), std::string("."), std::string("-o"),
        std::string("../kernel.so"), std::string(k_driver)})
    child.argv.push_back(option);
  // Variables such as CPATH or GCC_EXEC_PREFIX would change the code behind the key's back.
  child.environment = {"PATH=" + options_.search_path, "LC_ALL=C", "TMPDIR=" + directory.path()};

  ChildResult result;
  try {
    result = run_child(child);
  } catch (const std::system_error& error) {
    const std::string sentence = fmt::format("cannot run the host compiler: {}; ", error.what());
    if (may_pass(error.code())) throw TransientCompileError(sentence + "free resources and try again", {});
    throw CompileError(sentence + "name another one in the options", {});
  }
  erase_all(result.output, directory.path() + "/");
  const std::string code = read_file(directory.path() + "/kernel.so");
  if (!result.succeeded || code.empty()) {
    std::string sentence = sentence_of(source, arch, compiler, result);
    if (says(result, k_no_room))
      sentence += fmt::format("; make room in {} or set TMPDIR to another folder",
                              folder_of_temporaries(options_.temp_directory));
    const std::string log = fmt::format("{} ended with {}\noptions: {}\n{}\n{}", compiler, result.ending,
                                        fmt::join(code_options, " "), result.output,
                                        numbered_source_lines(result.output, source));
    if (may_pass(result)) throw TransientCompileError(sentence, log);
    throw CompileError(sentence, log);
  }

  check_identity();

  Binary binary;
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
  binary.code.assign(bytes, bytes + code.size());
  check_exports_kernel(binary.code);
  binary.facts.lowered_name = k_symbol;
  binary.facts.param_bytes = param_bytes(binary.code);
  binary.log = std::move(result.output);
  return binary;
}

}  // namespace jitsmith
