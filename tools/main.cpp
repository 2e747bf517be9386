// jitsmith: the command. It parses, runs one sub-command, and maps what that throws to an exit status: 0
// success, 1 failure, 2 a wrong request.
#include <csignal>
#include <cstdio>
#include <new>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/tools/command.hpp>
#include <jitsmith/tools/output.hpp>

namespace jitsmith {
namespace {

// Warnings are always told: a cache that can't be used costs a compile at every start, which should not be a
// riddle.
void tell(const Event& event, bool verbose) {
  if (verbose)
    complain(fmt::format("[{}] {}", event.what, event.text));
  else if (event.level == EventLevel::warning)
    complain("warning: " + event.text);
}

// CLI11 would take "--into= b.jsb" for "--into b.jsb", and so a variable that is not set for one that is.
void refuse_empty_values(std::span<char*> arguments) {
  for (const std::string_view argument : arguments)
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      refuse_empty(argument.substr(0, argument.size() - 1));
}

int run(int argc, char** argv) {
  CLI::App app("Specialises CUDA C++ kernel templates, compiles them at run time, caches and runs them.",
               "jitsmith");
  app.fallthrough();  // --verbose may also follow the sub-command
  app.set_version_flag("--version", JITSMITH_VERSION);
  Arguments arguments(app);
  arguments.at_most_one_sub_command();
  bool verbose = false;
  arguments.flag("--verbose", verbose, "Tell on standard error what happens");
  const SubCommand commands[] = {
      doctor_command(arguments), demo_command(arguments),        list_command(arguments),
      show_command(arguments),   explain_command(arguments),     run_command(arguments),
      warm_command(arguments),   warm_worker_command(arguments), cache_command(arguments)};
  refuse_empty_values({argv, static_cast<std::size_t>(argc)});
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{}; see jitsmith --help", error.what()));
    return k_wrong_request;
  }

  Options options = Options::from_environment();
  options.events = [verbose](const Event& event) { tell(event, verbose); };
  for (const SubCommand& command : commands)
    if (command.arguments.given()) return command.run(std::move(options));
  complain("no sub-command is given; see jitsmith --help");
  return k_wrong_request;
}

int run_and_explain(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const InvalidRequest& error) {
    complain(error.what());
    return k_wrong_request;
  } catch (const std::bad_alloc&) {
    complain("out of memory; free some, or give smaller arrays");
  } catch (const CompileError& error) {
    complain(error.what());
    std::fwrite(error.log.data(), 1, error.log.size(), stderr);  // ends with the numbered lines
  } catch (const std::exception& error) {                        // DriverError, NotCached, the file system's
    complain(error.what());
  }
  return k_failure;
}

}  // namespace
}  // namespace jitsmith

int main(int argc, char** argv) {
  jitsmith::prepare_standard_streams();
  // Ignored by whoever started us, it would hide how compilers and workers end.
  std::signal(SIGCHLD, SIG_DFL);
  return jitsmith::finish_output(jitsmith::run_and_explain(argc, argv));
}
