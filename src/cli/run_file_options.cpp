#include "cli/run_file_options.h"

#include <algorithm>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/familiar_names.h"
#include "formats/run_file.h"

namespace headroom {

std::vector<std::string> expand_run_file(std::vector<std::string> arguments, const CLI::App& app) {
  const auto is_yaml = [](const std::string& a) { return a.ends_with(".yaml") || a.ends_with(".yml"); };
  if (arguments.size() < 2 || !is_yaml(arguments[1])) return arguments;
  std::vector<std::string> out{arguments[0]};
  const std::vector<std::string> names = option_names(app);
  for (const RunFileEntry& entry : read_run_file(arguments[1])) {
    if (std::find(names.begin(), names.end(), entry.key) == names.end()) {
      const std::string meant = familiar_option(entry.key, names);
      throw Error(ErrorKind::usage, fmt::format("{}:{}: unknown key '{}'", arguments[1], entry.line, entry.key),
                  meant.empty() ? fmt::format("see `headroom {} --help`", arguments[0])
                                : fmt::format("did you mean '{}'?", meant));
    }
    for (const std::string& value : entry.values) out.push_back(fmt::format("--{}={}", entry.key, value));
  }
  out.insert(out.end(), arguments.begin() + 2, arguments.end());
  return out;
}

}  // namespace headroom
