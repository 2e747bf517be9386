// Runs a program to its end and captures what it says. No shell is involved.
#pragma once

#include <string>
#include <vector>

#include <jitsmith/jit/spawn.hpp>

namespace jitsmith {

struct ChildProcess {
  std::vector<std::string> argv;         // the program first, by its path
  std::vector<std::string> environment;  // NAME=value; nothing else is passed on
  std::string directory;                 // where it starts
};

struct ChildResult : ChildEnd {
  std::string output;  // standard output and error, in the order written
};

// The child gets empty standard input, none of our other descriptors, and default signal handling. Thread
// safe. Throws std::system_error when it cannot be started.
ChildResult run_child(const ChildProcess& child);

}  // namespace jitsmith
