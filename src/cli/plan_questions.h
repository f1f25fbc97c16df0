// What people ask before they train: options of `plan` whose answer is not a plan.
#pragma once

#include <optional>
#include <string>

#include "arguments/option.h"
#include "engine/plan_answers.h"
#include "train/options.h"

namespace headroom {

struct PlanQuestions {
  bool json = false;
  bool quiet = false;  // an option of every command
  bool ladder = false;
  bool minimum = false;
  bool measure = false;
  std::string models;  // a folder of models
  std::string curve;   // a page to write
};

void add_plan_questions(CLI::App& app, PlanQuestions& questions);

// Prints the answer to the question and gives the exit code; nothing where none is asked. Throws Error(usage) for two
// at once.
std::optional<int> answer_plan_question(const PlanQuestions& questions, const TrainOptions& options,
                                        const CommandWith& command);

}  // namespace headroom
