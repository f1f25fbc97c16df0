#include "cli/plan_diff_command.h"

#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "report/plan_diff.h"

namespace headroom {

CLI::App* add_plan_diff(CLI::App& plan, PlanDiffArguments& arguments) {
  CLI::App* app = plan.add_subcommand(
      "diff",
      "two plans as --json or `train` wrote them: bytes by class, seconds, and which techniques and tensors make the "
      "difference");
  app->add_option("plans", arguments.files, "two files")->type_name("A.json B.json");
  app->add_flag("--json", arguments.json, "the difference as JSON on stdout");
  app->footer(
      "  headroom plan --model M --memory 4GiB --json > a.json\n"
      "  headroom plan --model M --memory 8GiB --json > b.json\n"
      "  headroom plan diff a.json b.json       or O/plan.json of a run in O");
  return app;
}

int run_plan_diff(const PlanDiffArguments& arguments) {
  if (arguments.files.size() != 2)
    throw Error(ErrorKind::usage, fmt::format("plan diff compares two plans, not {}", arguments.files.size()),
                "give two files: headroom plan diff A.json B.json");
  const report::PlanDiff diff = report::plan_diff(arguments.files[0], arguments.files[1]);
  std::cout << (arguments.json ? report::diff_json(diff) : report::diff_text(diff));
  return 0;
}

}  // namespace headroom
