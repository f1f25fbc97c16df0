#include "cli/plan_questions.h"

#include <iostream>

#include "base/error.h"
#include "engine/ladder.h"
#include "engine/minimum.h"

namespace headroom {
namespace {

void refuse_several(const PlanQuestions& asked) {
  if (asked.ladder + asked.minimum > 1)
    throw Error(ErrorKind::usage, "--ladder and --minimum are two questions", "ask them one at a time");
}

std::string answer_ladder(const PlanQuestions& asked, const TrainOptions& options, const ModelFiles& model) {
  const std::vector<LadderRow> rows = technique_ladder(options, model);
  return asked.json ? ladder_json(rows) : ladder_text(rows, options.machine.memory);
}

std::string answer_minimum(const PlanQuestions& asked, const TrainOptions& options, const ModelFiles& model,
                           const CommandWith& command) {
  std::vector<MinimumLevel> levels = least_budgets(options, model);
  for (MinimumLevel& level : levels) level.command = command(level.changes);
  return asked.json ? minimum_json(levels) : minimum_text(levels);
}

}  // namespace

void add_plan_questions(CLI::App& app, PlanQuestions& questions) {
  app.add_flag("--json", questions.json, "the plan, or the answer to one of the questions below, as JSON on stdout");
  app.add_flag("--ladder", questions.ladder,
               "what each technique saves and costs alone, then together, against a run that takes none");
  app.add_flag(
      "--minimum", questions.minimum,
      "the least --memory of this run with exact techniques alone, then with reassociating, data-order and "
      "lossy ones too: bytes on each tier, seconds of a step, and the command that plans or, with --data, runs it");
}

std::optional<int> answer_plan_question(const PlanQuestions& questions, const TrainOptions& options,
                                        const ModelFiles& model, const CommandWith& command) {
  refuse_several(questions);
  if (questions.ladder)
    std::cout << answer_ladder(questions, options, model);
  else if (questions.minimum)
    std::cout << answer_minimum(questions, options, model, command);
  else
    return std::nullopt;
  return 0;
}

}  // namespace headroom
