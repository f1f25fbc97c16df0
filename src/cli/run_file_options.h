// A YAML file of options: `headroom train run.yaml --max-steps 10`.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace headroom {

// Expands a leading YAML file of `train` or `plan` into options before the others, so that the command line wins.
// Records the places of values that the command line does not override. Throws Error(usage) with file and line for an
// unknown key, and for several values of an option that has one.
ExpandedArguments expand_run_file(std::vector<std::string> arguments, const CLI::App& app);

}  // namespace headroom
