// A subcommand: declares its options on a CLI11 app and runs; returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace headroom {

struct Command {
  std::string name;
  std::string description;
  // Adds options to `app` and returns what to run once they are parsed.
  std::function<std::function<int()>(CLI::App& app)> declare;
};

Command init_command();
Command info_command();
Command plan_command();
Command train_command();
Command generate_command();
Command evaluate_command();
Command tokenize_command();
Command profile_command();

// Runs the command line; never throws. Exit codes of cli.md.
int run_command_line(std::vector<std::string> arguments);

// "--name": an option of scalar kind, the last of several wins.
template <typename T>
CLI::Option* scalar(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if constexpr (std::is_arithmetic_v<T>)
    option->check([](const std::string& text) { return std::string(text.empty() ? "a number is missing" : ""); }, "");
  return option;
}

// A size such as 8GiB, into bytes; below 1 MiB is refused as a slip of the unit.
CLI::Option* memory_option(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help);

}  // namespace headroom
