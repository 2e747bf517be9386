// jitsmith: the command. It parses, runs one sub-command, and maps what that throws to an exit status: 0
// success, 1 failure, 2 a wrong request.
#include <new>

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

int run(int argc, char** argv) {
  CLI::App app("Specialises CUDA C++ kernel templates, compiles them at run time, caches and runs them.",
               "jitsmith");
  app.require_subcommand(1);
  app.fallthrough();  // --verbose may also follow the sub-command
  app.set_version_flag("--version", JITSMITH_VERSION);
  bool verbose = false;
  app.add_flag("--verbose", verbose, "Tell on standard error what happens");
  const SubCommand commands[] = {doctor_command(app), demo_command(app),    list_command(app),
                                 show_command(app),   explain_command(app), run_command(app),
                                 warm_command(app),   cache_command(app)};
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
    if (command.parser->parsed()) return command.run(std::move(options));
  return k_wrong_request;  // require_subcommand() does not let this happen
}

int run_and_explain(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const InvalidRequest& error) {
    complain(error.what());
    return k_wrong_request;
  } catch (const std::bad_alloc&) {
    complain("out of memory; free some, or give smaller arrays");
  } catch (const std::exception& error) {  // CompileError, DriverError, NotCached, the file system's
    complain(error.what());
  }
  return k_failure;
}

}  // namespace
}  // namespace jitsmith

int main(int argc, char** argv) {
  jitsmith::prepare_standard_streams();
  return jitsmith::finish_output(jitsmith::run_and_explain(argc, argv));
}
