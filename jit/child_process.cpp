#include <jitsmith/jit/child_process.hpp>

#include <utility>

namespace jitsmith {

ChildResult run_child(const ChildProcess& child) {
  Pipe pipe;
  const pid_t pid = start_child({.argv = child.argv,
                                 .environment = &child.environment,
                                 .directory = child.directory.c_str(),
                                 .output = pipe.write_end.get(),
                                 .errors = pipe.write_end.get()});
  pipe.write_end.close();
  std::string output;
  take_in(pipe.read_end.get(), output);
  return {wait_for_child(pid), std::move(output)};
}

}  // namespace jitsmith
