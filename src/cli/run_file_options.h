// A YAML file of options: `headroom train run.yaml --max-steps 10`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace headroom {

// Turns a leading YAML file of `train` or `plan` into options placed before the others, so that the command line wins.
// Throws Error(usage) with file and line for a key that `app` has no option for.
std::vector<std::string> expand_run_file(std::vector<std::string> arguments, const CLI::App& app);

}  // namespace headroom
