// What running a child takes: pipes, a clean start, reading what it says, how it ended. Private, for
// run_child() and the workers of `jitsmith warm`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include <jitsmith/cache/descriptor.hpp>

namespace jitsmith {

// Both ends are closed by exec. The child's copy of its end is a duplicate at 0, 1 or 2, which is not.
struct Pipe {
  Pipe();  // throws std::system_error

  Descriptor read_end, write_end;
};

struct ChildStart {
  const std::vector<std::string>& argv;                   // the program first, by its path
  const std::vector<std::string>* environment = nullptr;  // NAME=value; none: that of this process
  const char* directory = nullptr;                        // where it starts; none: where this process is
  int input = -1;                                         // none: /dev/null
  int output, errors;
  bool leads_group = false;  // of processes: a new one
};

// The child gets default signal handling and none of our other descriptors. Throws std::system_error.
pid_t start_child(const ChildStart& start);

// Appends what there is, and drops all but the last `keep` bytes. False at the end, or when there is nothing
// to read from; true when a descriptor that does not block has no more now.
bool take_in(int descriptor, std::string& text, std::size_t keep = SIZE_MAX);

struct ChildEnd {
  bool succeeded = false;
  bool killed = false;                  // by a signal: nothing is known about what it was asked
  std::string ending;                   // "exit status 1", "signal 11 (Segmentation fault)"
  std::uint64_t peak_memory_bytes = 0;  // of the process, or of a child that it waited for
};

ChildEnd wait_for_child(pid_t child);

}  // namespace jitsmith
