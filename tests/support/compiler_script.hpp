// A host compiler that is a shell script: it fails, lies or waits as a test wants it to, or does as the real
// one.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <jitsmith/jit/host_compiler.hpp>
#include <jitsmith/runtime/options.hpp>

namespace jitsmith::test {

// What the script runs to compile in earnest: `exec REAL "$@"`.
inline std::string real_compile() {
  return "exec " + HostCompiler(Options::from_environment().host_compiler).compiler_path() + " \"$@\"";
}

inline void write_compiler_script(const std::string& path, const std::string& body) {
  std::ofstream(path) << "#!/bin/sh\n" << body << '\n';
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

// Makes it the compiler. Its bytes are its identity: another body is another toolchain.
inline void use_compiler_script(Options& options, const std::string& path, const std::string& body) {
  write_compiler_script(path, body);
  options.host_compiler.compiler = path;
}

}  // namespace jitsmith::test
