#include "cli/plan_questions.h"

#include <fmt/ranges.h>

#include <iostream>

#include "base/error.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "engine/budget_plans.h"
#include "engine/plan_answers.h"
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
    throw Error(ErrorKind::usage, fmt::format("{} cannot be asked together", fmt::join(names, " and ")),
                "ask them one at a time");
}

// Writes the page; returns the points as JSON with --json, else nothing.
std::string answer_curve(const PlanQuestions& asked, const TrainOptions& options, const CommandWith& command) {
  const std::vector<Plan> plans = plans_by_budget(options, open_model(options.model.path));
  const std::vector<std::string> commands = commands_of(plans, command);
  write_page(asked.curve, report::curve_page(plans, commands, options.machine.memory));
  print_note(fmt::format("wrote {}", asked.curve));
  return asked.json ? curve_json(plans, commands) : "";
}

}  // namespace

void add_plan_questions(CLI::App& app, PlanQuestions& questions) {
  constexpr const char* kGroup = "Questions before training (docs/questions.md)";
  app.add_flag("--json", questions.json, "the plan, or the answer to a question, as JSON on stdout");
  app.add_flag("--ladder", questions.ladder,
               "what each technique saves and costs alone, then together, compared with a run that uses none")
      ->group(kGroup);
  app.add_flag("--minimum", questions.minimum,
               "the least --memory of this run, first with exact techniques alone, then also with reassociating, "
               "data-order and lossy ones: bytes of each tier, seconds of a step, and the command that plans it (with "
               "--data: runs it); needs no --memory")
      ->group(kGroup);
  scalar(app, "--curve", questions.curve,
         "what each budget buys: a page that draws step time and peak by budget; each point links to its plan's bytes, "
         "techniques and command; with --json also prints the points")
      ->type_name("F.html")
      ->group(kGroup);
  app.add_flag(
         "--measure", questions.measure,
         "runs the fastest plan within --memory and the next two smaller ones on this machine, five steps each with "
         "random weights, and says which is fastest; writes nothing")
      ->group(kGroup);
  scalar(app, "--suggest-models", questions.models,
         "for each model folder in DIR: whether it trains and whether it serves within --memory, and the least that it "
         "needs; the largest that trains comes first; needs no --model")
      ->type_name("DIR")
      ->group(kGroup);
}

std::optional<int> answer_plan_question(const PlanQuestions& questions, const TrainOptions& options,
                                        const CommandWith& command) {
  refuse_several(questions);
  const auto print = [&](const PlanAnswer& answer) { std::cout << (questions.json ? answer.json : answer.text); };
  const auto note = [&](const std::string& text) {
    if (!questions.quiet) print_note(text);
  };
  if (!questions.models.empty())
    print(answer_models(options, questions.models));
  else if (questions.ladder)
    print(answer_ladder(options, open_model(options.model.path)));
  else if (questions.minimum)
    print(answer_minimum(options, open_model(options.model.path), command));
  else if (questions.measure)
    print(answer_measure(options, open_model(options.model.path), command, note));
  else if (!questions.curve.empty())
    std::cout << answer_curve(questions, options, command);
  else
    return std::nullopt;
  return 0;
}

}  // namespace headroom
