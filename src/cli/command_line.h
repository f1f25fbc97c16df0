// The frame of a command line: subcommands, options, errors in words, exit codes of cli.md. Free of any device, so that
// small programs can use it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

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

// The long names of an app's options, without dashes.
std::vector<std::string> option_names(const CLI::App& app);

// "--name": an option of scalar kind, the last of several wins.
template <typename T>
CLI::Option* scalar(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if constexpr (std::is_arithmetic_v<T>)
    option->check([](const std::string& text) { return std::string(text.empty() ? "a number is missing" : ""); }, "");
  return option;
}

// A size such as 8GiB as bytes. Throws Error(usage) naming the option; below 1 MiB is refused as a slip of the unit.
int64_t parse_memory(const std::string& option, const std::string& text);
// The same as an option.
CLI::Option* memory_option(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help);

}  // namespace headroom
