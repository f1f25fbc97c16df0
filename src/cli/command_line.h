// The frame of a command line: subcommands, options, error texts, exit codes (cli/command.h). Depends on no device, so
// small programs can use it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arguments/option.h"

namespace headroom {

// An option's value that comes from a file.
struct PlacedValue {
  std::string option;  // "--max-steps"
  std::string value;
  std::string place;  // "run.yaml:5"
};

// The arguments to parse, and the places of those that come from a file.
struct ExpandedArguments {
  std::vector<std::string> arguments;
  std::vector<PlacedValue> places;
};

// The place of the value that an error is about: of an option that `message` names, of a value that it quotes, or of a
// file name that it contains; empty if it is about none of `places`.
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

// Parses and runs; never throws. arguments[0] is the name of the subcommand.
int run_commands(const std::string& name, const std::string& about, std::vector<Command> commands,
                 std::vector<std::string> arguments);

}  // namespace headroom
