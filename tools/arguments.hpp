// Arguments: the kinds of options that sub-commands have. It stands before CLI11, a header that takes seconds
// to compile in each file that includes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace jitsmith {

// A variable that is not set in a script gives an empty value, which is none. Throws InvalidRequest.
[[noreturn]] void refuse_empty(std::string_view name);

class Arguments {
 public:
  explicit Arguments(CLI::App& parser) : parser_(&parser) {}

  Arguments sub_command(const char* name, const char* help);
  Arguments hidden_sub_command(const char* name, const char* help);  // not in the list of --help
  // None is for the caller to refuse: CLI11 would not name a misspelt one.
  void at_most_one_sub_command();
  bool given() const;              // after parsing: whether this sub-command was named
  bool sub_command_given() const;  // or one of this one's

  // `name` is "--out", or "op" for one that is found by its place; `type` is its value in the help text. What
  // a variable holds before is the default. All variables must live until parsing is done. Parsing throws
  // InvalidRequest for an empty value.
  void flag(const char* name, bool& value, const char* help);
  void text(const char* name, std::string& value, const char* type, const char* help);
  void required(const char* name, std::string& value, const char* type, const char* help);
  void repeated(const char* name, std::vector<std::string>& values, const char* type, const char* help);
  void comma_separated(const char* name, std::vector<std::string>& values, const char* type,
                       const char* help);
  void count(const char* name, unsigned& value, unsigned max, const char* type, const char* help);

 private:
  CLI::App* parser_;
};

}  // namespace jitsmith
