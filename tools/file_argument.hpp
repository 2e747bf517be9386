// What the files that the command is given have to be. `name` is the argument in a message: "--into", "FILE".
#pragma once

#include <string>

namespace jitsmith {

// Before the work: throws InvalidRequest unless a file can be made at `file`, or there is a regular one that
// will be replaced as a whole. What renames over a device, a FIFO or a symbolic link destroys it.
void check_replaceable(const std::string& name, const std::string& file);

// From the working directory on. Throws InvalidRequest when that is gone.
std::string absolute_path(const std::string& name, const std::string& file);

}  // namespace jitsmith
