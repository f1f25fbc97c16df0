// Questions before training (docs/questions.md), each answer as JSON and as text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/technique_step.h"
#include "plan/plan.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

struct PlanAnswer {
  std::string json;
  std::string text;  // for people
};

// The command line for the options, with changes.
using CommandWith = std::function<std::string(const OptionValues& changes)>;

// `command` makes the commands in the answers. All throw as the calls whose results they show: least_budgets(),
// technique_ladder(), measure_best_plans(), fitting_models().
PlanAnswer answer_minimum(const TrainOptions& options, const ModelFiles& model, const CommandWith& command);
PlanAnswer answer_ladder(const TrainOptions& options, const ModelFiles& model);
PlanAnswer answer_measure(const TrainOptions& options, const ModelFiles& model, const CommandWith& command,
                          const std::function<void(const std::string&)>& note);
PlanAnswer answer_models(const TrainOptions& options, const std::filesystem::path& directory);

// For each plan the command that selects it by its peak.
std::vector<std::string> commands_of(const std::vector<Plan>& plans, const CommandWith& command);

}  // namespace headroom
