#include "arguments/parse.h"

#include <algorithm>

#include "arguments/familiar_names.h"
#include "base/error.h"

namespace headroom {
namespace {

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

}  // namespace

void refuse_unknown_option(const CLI::App& app, const std::string& name) {
  const std::string meant = familiar_option(name, option_names(app));
  throw Error(
      ErrorKind::usage, fmt::format("unknown option '{}'", name),
      meant.empty() ? "see the options of the command line's --help" : fmt::format("did you mean '{}'?", meant));
}

bool has_option(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(with_dashes(name)) != nullptr;
}

void parse_values(CLI::App& app, const NamedValues& values) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : values) {
    if (!has_option(app, name)) refuse_unknown_option(app, name);
    arguments.push_back(with_dashes(name) + "=" + value);
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them reversed
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, parse_message(error, app), "");
  }
}

}  // namespace headroom
