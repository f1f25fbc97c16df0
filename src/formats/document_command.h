// Shell text as the words of its commands, each with its line and bytes. Executes nothing, and expands only variables
// that the text itself sets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct CommandWord {
  std::string text;            // quotes and escapes resolved, known variables filled in
  int64_t line = 0;            // from 1
  int64_t begin = 0, end = 0;  // bytes in the text, quotes included; both 0 when a variable's text was split into words
  bool unset_variable = false;  // contains a $NAME or $(...) whose value is not in the text: kept as written
};

// One simple command: words up to an unquoted newline, ';', '&', '|' or redirection.
struct ShellCommand {
  std::vector<CommandWord> words;                  // without the leading assignments
  std::map<std::string, std::string> environment;  // assignments before the command, and earlier exports
  std::vector<CommandWord> assignments;            // NAME=value before the command
};

// Comments are dropped; lines joined by a backslash are one. `variables` starts with those known from outside and gets
// each assignment of the text. Throws Error(format) with file and line for an unclosed quote, above 8 MiB or 200000
// words.
std::vector<ShellCommand> parse_shell_commands(std::string_view text, const std::string& source,
                                               std::map<std::string, std::string> variables = {});

}  // namespace headroom
