// Options of a CLI11 app, and what is wrong with a value in words. Free of any device, so that small programs can use
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace headroom {

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

// What is wrong, in our words: "--max-steps many is not a whole number".
std::string parse_message(const CLI::ParseError& error, const CLI::App& app);

// "--packing" means "--packing true", as elsewhere: completes options that take true and that no value follows.
std::vector<std::string> with_switches_on(const std::vector<std::string>& arguments, const CLI::App& app);

}  // namespace headroom
