// The frame of a command line: subcommands, options, text of errors, exit codes (cli/command.h). Free of any device, so
// that small programs can use it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arguments/option.h"

namespace headroom {

// A value of an option that stands in a file.
struct PlacedValue {
  std::string option;  // "--max-steps"
  std::string value;
  std::string place;  // "run.yaml:5"
};

// Arguments as they are parsed, and where those that no command line gave stand.
struct ExpandedArguments {
  std::vector<std::string> arguments;
  std::vector<PlacedValue> places;
};

// The place of the value that a refusal is about: of an option that `message` names, or of a value that it quotes or,
// of files, holds; empty when it is about none of `places`.
std::string place_of_refusal(const std::string& message, const std::vector<PlacedValue>& places);

// A subcommand: declares its options on a CLI11 app and runs; returns the exit code.
struct Command {
  std::string name;
  std::string description;
  // Adds options to `app` and returns what to run once they are parsed.
  std::function<std::function<int()>(CLI::App& app)> declare;
  // Rewrites the arguments before they are parsed; may be absent.
  std::function<ExpandedArguments(std::vector<std::string> arguments, const CLI::App& app)> expand = {};
};

// Parses and runs; never throws. The first argument is the command's name.
int run_commands(const std::string& name, const std::string& about, std::vector<Command> commands,
                 std::vector<std::string> arguments);

}  // namespace headroom
