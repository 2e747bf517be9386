// A sub-command: what it parses and what it does. main.cpp parses, runs the one that was named, and turns
// whatever it throws into a sentence and an exit status.
#pragma once

#include <functional>

#include <jitsmith/runtime/options.hpp>
#include <jitsmith/tools/arguments.hpp>

namespace jitsmith {

inline constexpr int k_success = 0;
inline constexpr int k_failure = 1;
inline constexpr int k_wrong_request = 2;

struct SubCommand {
  Arguments arguments;
  std::function<int(Options)> run;  // the exit status; `Options` as the environment says
};

SubCommand doctor_command(Arguments& app);
SubCommand demo_command(Arguments& app);
SubCommand list_command(Arguments& app);
SubCommand show_command(Arguments& app);
SubCommand explain_command(Arguments& app);
SubCommand run_command(Arguments& app);
SubCommand warm_command(Arguments& app);
SubCommand warm_worker_command(Arguments& app);
SubCommand cache_command(Arguments& app);

}  // namespace jitsmith
