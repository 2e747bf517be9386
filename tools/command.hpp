// A sub-command: what it parses and what it does. main.cpp parses, runs the one that was named, and turns
// whatever it throws into a sentence and an exit status.
#pragma once

#include <functional>

#include <jitsmith/runtime/options.hpp>

namespace CLI {
class App;
}

namespace jitsmith {

inline constexpr int k_success = 0;
inline constexpr int k_failure = 1;
inline constexpr int k_wrong_request = 2;

struct SubCommand {
  CLI::App* parser;
  std::function<int(Options)> run;  // the exit status; `Options` as the environment says
};

SubCommand doctor_command(CLI::App& app);
SubCommand demo_command(CLI::App& app);
SubCommand list_command(CLI::App& app);
SubCommand show_command(CLI::App& app);
SubCommand explain_command(CLI::App& app);
SubCommand run_command(CLI::App& app);
SubCommand warm_command(CLI::App& app);
SubCommand cache_command(CLI::App& app);

}  // namespace jitsmith
