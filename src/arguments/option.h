// Options of a CLI11 app, and messages for wrong values. Depends on no device, so small programs can use it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace headroom {

// The long names of an app's options, without dashes.
std::vector<std::string> option_names(const CLI::App& app);

// "--name": an option with a single value; if it is repeated, the last one wins.
template <typename T>
CLI::Option* scalar(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if constexpr (std::is_arithmetic_v<T>)
    option->check([](const std::string& text) { return std::string(text.empty() ? "a number is missing" : ""); }, "");
  return option;
}

// Parses a size such as 8GiB to bytes. Throws Error(usage) naming the option, also below 1 MiB: then the unit is
// missing.
int64_t parse_memory(const std::string& option, const std::string& text);
// The same as an option.
CLI::Option* memory_option(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help);

// The parser's error in our words: "--max-steps many is not a whole number".
std::string parse_message(const CLI::ParseError& error, const CLI::App& app);

// "--packing" means "--packing true", as in other programs: adds "true" after options that accept it and have no value.
std::vector<std::string> with_switches_on(const std::vector<std::string>& arguments, const CLI::App& app);

}  // namespace headroom
