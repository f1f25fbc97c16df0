#include "cli/plan_questions.h"

#include <fmt/ranges.h>

#include <iostream>

#include "base/error.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "engine/budget_plans.h"
#include "engine/ladder.h"
#include "engine/measure_plans.h"
#include "engine/minimum.h"
#include "engine/model_fit.h"
#include "report/curve_page.h"

namespace headroom {
namespace {

void refuse_several(const PlanQuestions& asked) {
  std::vector<std::string> names;
  if (asked.ladder) names.emplace_back("--ladder");
  if (asked.measure) names.emplace_back("--measure");
  if (asked.minimum) names.emplace_back("--minimum");
  if (!asked.models.empty()) names.emplace_back("--suggest-models");
  if (!asked.curve.empty()) names.emplace_back("--curve");
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

std::string answer_measure(const PlanQuestions& asked, const TrainOptions& options, const CommandWith& command) {
  const auto note = [&](const std::string& text) {
    if (!asked.quiet) print_note(text);
  };
  PlanMeasurements measured = measure_best_plans(options, open_model(options.model.path), note);
  for (MeasuredPlan& plan : measured.plans) plan.command = command({{"memory", std::to_string(plan.peak_bytes)}});
  return asked.json ? measurements_json(measured) : measurements_text(measured);
}

std::string answer_models(const PlanQuestions& asked, const TrainOptions& options) {
  const std::vector<ModelFit> models = fitting_models(options, asked.models);
  return asked.json ? models_json(models) : models_text(models, asked.models, options.machine.memory);
}

// Writes the page; gives the points where they are asked for.
std::string answer_curve(const PlanQuestions& asked, const TrainOptions& options, const CommandWith& command) {
  const std::vector<Plan> plans = plans_by_budget(options, open_model(options.model.path));
  std::vector<std::string> commands;
  for (const Plan& plan : plans) commands.push_back(command({{"memory", std::to_string(plan.peak_bytes)}}));
  write_page(asked.curve, report::curve_page(plans, commands, options.machine.memory));
  print_note(fmt::format("wrote {}", asked.curve));
  return asked.json ? curve_json(plans, commands) : "";
}

}  // namespace

void add_plan_questions(CLI::App& app, PlanQuestions& questions) {
  constexpr const char* kGroup = "Questions before training (docs/questions.md)";
  app.add_flag("--json", questions.json, "the plan, or the answer to a question, as JSON on stdout");
  app.add_flag("--ladder", questions.ladder,
               "what each technique saves and costs alone, then together, against a run that takes none")
      ->group(kGroup);
  app.add_flag("--minimum", questions.minimum,
               "the least --memory of this run with exact techniques alone, then with reassociating, data-order and "
               "lossy ones too: bytes of each tier, seconds of a step, and the command that plans or, with --data, "
               "runs it; --memory is not needed")
      ->group(kGroup);
  scalar(app, "--curve", questions.curve,
         "what each budget buys: step time and peak drawn by budget as a page, each point leading to its plan's bytes, "
         "techniques and command; with --json the points too")
      ->type_name("F.html")
      ->group(kGroup);
  app.add_flag("--measure", questions.measure,
               "runs the fastest plan in --memory and the two next smaller ones on this machine, five steps each with "
               "drawn weights, and says which is fastest; writes nothing")
      ->group(kGroup);
  scalar(app, "--suggest-models", questions.models,
         "of each model folder in DIR whether it trains and whether it serves in --memory, and with how much at least; "
         "best first: the largest that trains; --model is not needed")
      ->type_name("DIR")
      ->group(kGroup);
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
  else if (questions.measure)
    std::cout << answer_measure(questions, options, command);
  else if (!questions.curve.empty())
    std::cout << answer_curve(questions, options, command);
  else
    return std::nullopt;
  return 0;
}

}  // namespace headroom
