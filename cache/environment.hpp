// The one way to the environment, for every layer: a program with raised privileges believes nothing of it.
#pragma once

#include <optional>
#include <string>

namespace jitsmith {

// Whether this process runs with privileges that whoever started it need not have: set-uid, set-gid, file
// capabilities.
bool raised_privileges();

// The variable's value. Nothing when it is unset or empty, and in a process with raised privileges.
std::optional<std::string> environment(const char* name);

}  // namespace jitsmith
