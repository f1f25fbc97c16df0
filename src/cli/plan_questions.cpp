#include "cli/plan_questions.h"

#include <fmt/ranges.h>

#include <iostream>

#include "base/error.h"
#include "engine/ladder.h"
#include "engine/minimum.h"
#include "engine/model_fit.h"

namespace headroom {
namespace {

void refuse_several(const PlanQuestions& asked) {
  std::vector<std::string> names;
  if (asked.ladder) names.emplace_back("--ladder");
  if (asked.minimum) names.emplace_back("--minimum");
  if (!asked.models.empty()) names.emplace_back("--suggest-models");
  if (names.size() > 1)
    throw Error(ErrorKind::usage, fmt::format("{} are several questions", fmt::join(names, " and ")),
                "ask them one at a time");
}

std::string answer_ladder(const PlanQuestions& asked, const TrainOptions& options) {
  const std::vector<LadderRow> rows = technique_ladder(options, open_model(options.model.path));
  return asked.json ? ladder_json(rows) : ladder_text(rows, options.machine.memory);
}

std::string answer_minimum(const PlanQuestions& asked, const TrainOptions& options, const CommandWith& command) {
  std::vector<MinimumLevel> levels = least_budgets(options, open_model(options.model.path));
  for (MinimumLevel& level : levels) level.command = command(level.changes);
  return asked.json ? minimum_json(levels) : minimum_text(levels);
}

std::string answer_models(const PlanQuestions& asked, const TrainOptions& options) {
  const std::vector<ModelFit> models = fitting_models(options, asked.models);
  return asked.json ? models_json(models) : models_text(models, asked.models, options.machine.memory);
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
  scalar(
      app, "--suggest-models", questions.models,
      "of each model folder in DIR, whether it trains and whether it serves in --memory, and with how much at least; "
      "the largest that trains first")
      ->type_name("DIR");
}

std::optional<int> answer_plan_question(const PlanQuestions& questions, const TrainOptions& options,
                                        const CommandWith& command) {
  refuse_several(questions);
  if (!questions.models.empty())
    std::cout << answer_models(questions, options);
  else if (questions.ladder)
    std::cout << answer_ladder(questions, options);
  else if (questions.minimum)
    std::cout << answer_minimum(questions, options, command);
  else
    return std::nullopt;
  return 0;
}

}  // namespace headroom
