// Runs the built command in an environment of its own.
#pragma once

#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

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

// A running command, for tests that send it signals.
class StartedTool {
 public:
  // In a directory of its own; `prepare` runs in the child, after standard output was redirected to a file.
  StartedTool(const std::vector<std::string>& environment, const std::vector<std::string>& args,
              const std::function<void()>& prepare = {}) {
    std::vector<char*> argv{const_cast<char*>(JITSMITH_TOOL)}, variables;
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    for (const std::string& text : environment) variables.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    variables.push_back(nullptr);
    const std::string out = streams_ / "out", err = streams_ / "err";
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    for (const int signal : {SIGINT, SIGTERM})
      ::signal(signal, SIG_DFL);  // the tests may run in the background
    const int files[] = {::open("/dev/null", O_RDONLY), ::creat(out.c_str(), 0600),
                         ::creat(err.c_str(), 0600)};
    for (int i = 0; i < 3; ++i) ::dup2(files[i], i);
    if (prepare) prepare();
    ::execve(JITSMITH_TOOL, argv.data(), variables.data());
    ::_exit(127);
  }
  ~StartedTool() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), wait();
  }
  StartedTool(const StartedTool&) = delete;
  StartedTool& operator=(const StartedTool&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  int wait() {  // the status as waitpid gives it
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }
  std::string out() const { return text_of_file(streams_ / "out"); }
  std::string err() const { return text_of_file(streams_ / "err"); }

 private:
  const TempDir streams_;
  pid_t pid_ = -1;
};

class Tool {
 public:
  // `cache` is a directory, or any other text for JITSMITH_CACHE_DIR.
  explicit Tool(std::string cache) {
    set("JITSMITH_CACHE_DIR", std::move(cache)).set("PATH", "/usr/local/bin:/usr/bin:/bin");
  }

  Tool& set(const std::string& name, const std::string& value) {
    environment_.push_back(name + "=" + value);
    return *this;
  }

  const std::vector<std::string>& environment() const { return environment_; }

  // `redirection` is shell syntax, after which standard output may be elsewhere.
  ToolResult operator()(const std::vector<std::string>& args, const std::string& redirection = {}) const {
    const TempDir streams;
    ChildProcess child{.environment = environment_, .directory = streams.path().string()};
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
