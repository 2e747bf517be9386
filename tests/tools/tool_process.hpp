// Runs the built command in an environment of its own.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <jitsmith/jit/child_process.hpp>

#include "support/temp_dir.hpp"

namespace jitsmith::test {

struct ToolResult {
  int status;  // -1 when a signal ended it
  std::string out, err;
};

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Tool {
 public:
  // `cache` is a directory, or any other text for JITSMITH_CACHE_DIR.
  explicit Tool(std::string cache) { set("JITSMITH_CACHE_DIR", std::move(cache)); }

  Tool& set(const std::string& name, const std::string& value) {
    environment_.push_back(name + "=" + value);
    return *this;
  }

  // `redirection` is shell syntax, after which standard output may be elsewhere.
  ToolResult operator()(const std::vector<std::string>& args, const std::string& redirection = {}) const {
    const TempDir streams;
    ChildProcess child{.environment = environment_, .directory = streams.path().string()};
    child.environment.push_back("PATH=/usr/local/bin:/usr/bin:/bin");
    child.argv = {"/bin/sh", "-c", "\"$0\" \"$@\" >out 2>err " + redirection, JITSMITH_TOOL};
    child.argv.insert(child.argv.end(), args.begin(), args.end());
    const std::string ending = run_child(child).ending;
    int status = -1;
    if (constexpr std::string_view prefix = "exit status "; ending.starts_with(prefix))
      status = std::stoi(ending.substr(prefix.size()));
    return {status < 126 ? status : -1, text_of_file(streams / "out"), text_of_file(streams / "err")};
  }

 private:
  std::vector<std::string> environment_;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace jitsmith::test
