#include <jitsmith/tools/arguments.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

CLI::Option& never_empty(CLI::Option& option, const char* type) {
  return *option.type_name(type)->check(
      [&option](const std::string& value) {
        if (value.empty()) refuse_empty(option.get_name());
        return std::string();
      },
      "");
}

}  // namespace

void refuse_empty(std::string_view name) {
  throw InvalidRequest(fmt::format("the argument {} is empty; give it a value, or leave it out", name));
}

Arguments Arguments::sub_command(const char* name, const char* help) {
  return Arguments(*parser_->add_subcommand(name, help));
}

Arguments Arguments::hidden_sub_command(const char* name, const char* help) {
  return Arguments(*parser_->add_subcommand(name, help)->group(""));
}

void Arguments::at_most_one_sub_command() {
  parser_->require_subcommand(0, 1);
}

bool Arguments::given() const {
  return parser_->parsed();
}

bool Arguments::sub_command_given() const {
  return !parser_->get_subcommands().empty();
}

void Arguments::flag(const char* name, bool& value, const char* help) {
  parser_->add_flag(name, value, help);
}

void Arguments::text(const char* name, std::string& value, const char* type, const char* help) {
  CLI::Option& option = never_empty(*parser_->add_option(name, value, help), type);
  if (!value.empty()) option.capture_default_str();
}

void Arguments::required(const char* name, std::string& value, const char* type, const char* help) {
  never_empty(*parser_->add_option(name, value, help), type).required();
}

void Arguments::repeated(const char* name, std::vector<std::string>& values, const char* type,
                         const char* help) {
  // One value each time: CLI11 would also take what follows, the op for one.
  never_empty(*parser_->add_option(name, values, help), type).allow_extra_args(false);
}

void Arguments::comma_separated(const char* name, std::vector<std::string>& values, const char* type,
                                const char* help) {
  never_empty(*parser_->add_option(name, values, help), type).delimiter(',')->allow_extra_args(false);
}

void Arguments::count(const char* name, unsigned& value, unsigned max, const char* type, const char* help) {
  never_empty(*parser_->add_option(name, value, help), type)
      .check(CLI::Range(1u, max))
      ->capture_default_str();
}

}  // namespace jitsmith
