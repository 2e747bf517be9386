#include <jitsmith/tools/arguments.hpp>

#include <CLI/CLI.hpp>

namespace jitsmith {

Arguments Arguments::sub_command(const char* name, const char* help) {
  return Arguments(*parser_->add_subcommand(name, help));
}

Arguments Arguments::hidden_sub_command(const char* name, const char* help) {
  return Arguments(*parser_->add_subcommand(name, help)->group(""));
}

void Arguments::require_sub_command() {
  parser_->require_subcommand(1);
}

bool Arguments::given() const {
  return parser_->parsed();
}

void Arguments::flag(const char* name, bool& value, const char* help) {
  parser_->add_flag(name, value, help);
}

void Arguments::text(const char* name, std::string& value, const char* type, const char* help) {
  CLI::Option* const option = parser_->add_option(name, value, help)->type_name(type);
  if (!value.empty()) option->capture_default_str();
}

void Arguments::required(const char* name, std::string& value, const char* type, const char* help) {
  parser_->add_option(name, value, help)->type_name(type)->required();
}

void Arguments::repeated(const char* name, std::vector<std::string>& values, const char* type,
                         const char* help) {
  // One value each time: CLI11 would also take what follows, the op for one.
  parser_->add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

void Arguments::comma_separated(const char* name, std::vector<std::string>& values, const char* type,
                                const char* help) {
  parser_->add_option(name, values, help)->type_name(type)->delimiter(',')->allow_extra_args(false);
}

void Arguments::count(const char* name, unsigned& value, unsigned max, const char* type, const char* help) {
  parser_->add_option(name, value, help)->type_name(type)->check(CLI::Range(1u, max))->capture_default_str();
}

}  // namespace jitsmith
