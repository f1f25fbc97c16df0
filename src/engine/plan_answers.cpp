#include "engine/plan_answers.h"

#include "engine/ladder.h"
#include "engine/measure_plans.h"
#include "engine/minimum.h"
#include "engine/model_fit.h"

namespace headroom {
namespace {

OptionValues budget_of(int64_t peak_bytes) { return {{"memory", std::to_string(peak_bytes)}}; }

}  // namespace

PlanAnswer answer_minimum(const TrainOptions& options, const ModelFiles& model, const CommandWith& command) {
  std::vector<MinimumLevel> levels = least_budgets(options, model);
  for (MinimumLevel& level : levels) level.command = command(level.changes);
  return {minimum_json(levels), minimum_text(levels)};
}

PlanAnswer answer_ladder(const TrainOptions& options, const ModelFiles& model) {
  const std::vector<LadderRow> rows = technique_ladder(options, model);
  return {ladder_json(rows), ladder_text(rows, options.machine.memory)};
}

PlanAnswer answer_measure(const TrainOptions& options, const ModelFiles& model, const CommandWith& command,
                          const std::function<void(const std::string&)>& note) {
  PlanMeasurements measured = measure_best_plans(options, model, note);
  for (MeasuredPlan& plan : measured.plans) plan.command = command(budget_of(plan.peak_bytes));
  return {measurements_json(measured), measurements_text(measured)};
}

PlanAnswer answer_models(const TrainOptions& options, const std::filesystem::path& directory) {
  const std::vector<ModelFit> models = fitting_models(options, directory);
  return {models_json(models), models_text(models, directory, options.machine.memory)};
}

std::vector<std::string> commands_of(const std::vector<Plan>& plans, const CommandWith& command) {
  std::vector<std::string> commands;
  for (const Plan& plan : plans) commands.push_back(command(budget_of(plan.peak_bytes)));
  return commands;
}

}  // namespace headroom
