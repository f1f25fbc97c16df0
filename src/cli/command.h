// The subcommands of headroom.
#pragma once

#include "cli/command_line.h"

namespace headroom {

Command init_command();
Command info_command();
Command plan_command();
Command train_command();
Command generate_command();
Command evaluate_command();
Command tokenize_command();
Command profile_command();
Command report_command();
Command watch_command();
Command merge_command();
Command quantize_command();
Command serve_command();
Command bench_serve_command();
Command doctor_command();  // with the planner, which says what headroom itself would need

// Runs the command line; never throws. Returns the exit code: 0, 1 if the run failed, 2 for wrong options or files, 3
// if the budget is too small, 128 + N after signal N.
int run_command_line(std::vector<std::string> arguments);

}  // namespace headroom
