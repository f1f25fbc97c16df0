#include "cli/run_file_options.h"

#include <algorithm>

#include "arguments/familiar_names.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "formats/run_file.h"

namespace headroom {

namespace {

bool is_given(const std::string& option, const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == option || argument.starts_with(option + "=");
  });
}

}  // namespace

ExpandedArguments expand_run_file(std::vector<std::string> arguments, const CLI::App& app) {
  const auto is_yaml = [](const std::string& a) { return a.ends_with(".yaml") || a.ends_with(".yml"); };
  if (arguments.size() < 2 || !is_yaml(arguments[1])) return {std::move(arguments), {}};
  const std::vector<std::string> typed(arguments.begin() + 2, arguments.end());
  ExpandedArguments out{{arguments[0]}, {}};
  const std::vector<std::string> names = option_names(app);
  for (const RunFileEntry& entry : read_run_file(arguments[1])) {
    if (std::find(names.begin(), names.end(), entry.key) == names.end()) {
      const std::string meant = familiar_option(entry.key, names);
      throw Error(ErrorKind::usage, fmt::format("{}:{}: unknown key '{}'", arguments[1], entry.line, entry.key),
                  meant.empty() ? fmt::format("see `headroom {} --help`", arguments[0])
                                : fmt::format("did you mean '{}'?", meant));
    }
    const std::string option = "--" + entry.key;
    const bool one = app.get_option(option)->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast;
    if (one && entry.values.size() > 1)
      throw Error(ErrorKind::usage,
                  fmt::format("{}:{}: '{}' has {} values", arguments[1], entry.line, entry.key, entry.values.size()),
                  "give it one");
    for (size_t i = 0; i < entry.values.size(); ++i) {
      out.arguments.push_back(fmt::format("{}={}", option, entry.values[i]));
      if (!one || !is_given(option, typed))
        out.places.push_back({option, entry.values[i], fmt::format("{}:{}", arguments[1], entry.value_lines[i])});
    }
  }
  out.arguments.insert(out.arguments.end(), typed.begin(), typed.end());
  return out;
}

}  // namespace headroom
