#include <jitsmith/jit/host_compiler.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/digest.hpp>
#include <jitsmith/jit/child_process.hpp>
#include <jitsmith/jit/elf.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/temp_directory.hpp>

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

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Virtual paths become real ones below the temporary directory, and text of an #include line.
void check_virtual_path(const std::string& path) {
  const fs::path parts(path);
  const bool climbs = std::ranges::find(parts, fs::path("..")) != parts.end();
  if (path.empty() || parts.is_absolute() || climbs || path.find_first_of("\"\\\n") != std::string::npos)
    throw CompileError(
        fmt::format("source path '{}' is not a plain relative path; name it like \"my_kernels/add.cu\"",
                    path),
        {});
}

struct Place {
  const SourceFile* file;
  std::size_t line;
};

// The place of the first error that lies in one of our sources: the compiler prints "path:line:column: error:
// ...".
std::optional<Place> first_error(const SpecializedSource& source, std::string_view log) {
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view text = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (text.find("error: ") == std::string_view::npos) continue;
    if (text.starts_with("./")) text.remove_prefix(2);
    const auto in = [&text](const SourceFile& file) {
      return text.starts_with(file.path) && text.substr(file.path.size()).starts_with(':');
    };
    const auto header = std::ranges::find_if(source.headers, in);
    const SourceFile* file = in(source.main)                  ? &source.main
                             : header != source.headers.end() ? &*header
                                                              : nullptr;
    if (file != nullptr) return Place{file, std::strtoul(text.data() + file->path.size() + 1, nullptr, 10)};
  }
  return std::nullopt;
}

// The lines around a place, numbered, the place itself marked.
std::string excerpt(const Place& place) {
  constexpr std::size_t k_context_lines = 3;
  std::string text = fmt::format("{}:\n", place.file->path);
  std::string_view rest = place.file->text;
  for (std::size_t line = 1; !rest.empty() && line <= place.line + k_context_lines; ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (line + k_context_lines >= place.line)
      text += fmt::format("{} {:>5} | {}\n", line == place.line ? '>' : ' ', line, rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
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

std::string HostCompiler::identity() {
  const std::lock_guard lock(mutex_);
  if (identity_.empty()) {
    const fs::path path = fs::canonical(compiler_path());
    // The driver and the compiler proper come from one package build, so the driver's build-id stands for
    // both.
    const auto build_id = build_id_of_file(path.string());
    identity_ = fmt::format("{} {}", path.filename().string(),
                            build_id ? "build-id " + *build_id : "xxh3 " + digest_of(read_file(path)).hex());
  }
  return identity_;
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
    throw CompileError(
        fmt::format("cannot run the host compiler: {}; name another one in the options", error.what()), {});
  }
  const std::string code = read_file(directory.path() + "/kernel.so");
  if (!result.succeeded || code.empty()) {
    const auto place = first_error(source, result.output);
    throw CompileError(
        fmt::format("{} of {} did not compile for the host target: {} ended with {}\noptions: {}\n{}{}",
                    source.instantiation, source.main.path, compiler, result.ending,
                    fmt::join(code_options, " "), place ? excerpt(*place) : "", result.output),
        result.output);
  }

  Binary binary;
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
  binary.code.assign(bytes, bytes + code.size());
  binary.facts.lowered_name = k_symbol;
  binary.facts.param_bytes = param_bytes(binary.code);
  binary.log = std::move(result.output);
  return binary;
}

}  // namespace jitsmith
