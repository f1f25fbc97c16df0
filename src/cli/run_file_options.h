// A YAML file of options: `headroom train run.yaml --max-steps 10`.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace headroom {

// Turns a leading YAML file of `train` or `plan` into options placed before the others, so that the command line wins.
// Their places are those of the values that it leaves. Throws Error(usage) with file and line for a key that `app` has
// no option for, and for several values of one that takes one.
ExpandedArguments expand_run_file(std::vector<std::string> arguments, const CLI::App& app);

}  // namespace headroom
