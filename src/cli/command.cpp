#include "cli/command.h"

#include "cli/command_line.h"

namespace headroom {

int run_command_line(std::vector<std::string> arguments) {
  return run_commands("headroom",
                      "headroom trains and serves language models inside a memory budget.\n\n"
                      "  headroom plan  --model M --memory 8GiB            what fits, and why\n"
                      "  headroom train --model M --data D --memory 8GiB --output-dir O\n",
                      {init_command(), info_command(), plan_command(), train_command(), generate_command(),
                       evaluate_command(), tokenize_command(), profile_command(), report_command(), watch_command(),
                       merge_command(), quantize_command(), serve_command(), bench_serve_command(), doctor_command()},
                      std::move(arguments));
}

}  // namespace headroom
