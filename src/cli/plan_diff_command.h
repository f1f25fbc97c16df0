// `plan diff A B`.
#pragma once

#include <string>
#include <vector>

#include "arguments/option.h"

namespace headroom {

struct PlanDiffArguments {
  std::vector<std::string> files;
  bool json = false;
};

// Adds the subcommand to `plan`.
CLI::App* add_plan_diff(CLI::App& plan, PlanDiffArguments& arguments);

// Prints the difference and returns the exit code. Throws Error(usage | format).
int run_plan_diff(const PlanDiffArguments& arguments);

}  // namespace headroom
