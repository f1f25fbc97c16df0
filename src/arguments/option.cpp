#include "arguments/option.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

std::string kind_of_value(const std::string& type) {
  if (type == "FLOAT") return "a number";
  if (type == "INT") return "a whole number";
  if (type == "UINT") return "a whole number from 0";
  if (type == "BOOLEAN") return "true or false";
  return "of kind " + type;
}

bool takes_true(const CLI::Option& option) {
  const std::string kind = option.get_type_name();
  return kind == "BOOLEAN" || kind.starts_with("[true|");
}

}  // namespace

std::string parse_message(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  if (const std::string start = "Could not convert: "; text.starts_with(start)) {
    const size_t equals = text.find(" = ");
    const std::string name = text.substr(start.size(), equals - start.size());
    const CLI::Option* option = app.get_option_no_throw(name);
    return fmt::format("{} {} is not {}", name, text.substr(std::min(text.size(), equals + 3)),
                       kind_of_value(option ? option->get_type_name() : "VALUE"));
  }
  if (const size_t value = text.find(": Value "), range = text.find(" not in range ");
      value != std::string::npos && range > value && range != std::string::npos)
    return fmt::format("{} {} is out of range", text.substr(0, value), text.substr(value + 8, range - value - 8));
  if (error.get_name() == "ArgumentMismatch") return fmt::format("{} has no value", text.substr(0, text.find(':')));
  if (text == "A subcommand is required") return "no command is given";
  if (const size_t colon = text.find("not expected: "); colon != std::string::npos)
    return fmt::format("unexpected argument '{}'", text.substr(colon + 14));
  return text;
}

std::vector<std::string> with_switches_on(const std::vector<std::string>& arguments, const CLI::App& app) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    out.push_back(arguments[i]);
    const CLI::Option* option = arguments[i].starts_with("--") ? app.get_option_no_throw(arguments[i]) : nullptr;
    const bool last = i + 1 == arguments.size() || arguments[i + 1].starts_with("--");
    if (option && last && takes_true(*option)) out.push_back("true");
  }
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

int64_t parse_memory(const std::string& option, const std::string& text) {
  const int64_t bytes = parse_bytes(text);
  if (bytes < (int64_t{1} << 20))
    throw Error(ErrorKind::usage, fmt::format("{} {} is {} bytes", option, text, bytes),
                bytes > 0 && text.find_first_not_of("0123456789") == std::string::npos
                    ? fmt::format("a bare number is bytes; did you mean {}GiB?", text)
                    : "give at least 1MiB");
  return bytes;
}

CLI::Option* memory_option(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name, [&bytes, name](const std::string& text) { bytes = parse_memory(name, text); }, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->type_name("SIZE");
}

}  // namespace headroom
