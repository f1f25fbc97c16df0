// The plan that each budget buys.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// The plans of a training run for different budgets of its device, whatever the options' --memory is, ascending in
// peak; at most about 32, evenly spread if there are more. Each is the result of plan_training() with its peak as
// --memory, without its programs and tensors. Throws as plan_training(), and Error(does_not_fit) if the budgets of the
// lower tiers hold no plan.
std::vector<Plan> plans_by_budget(const TrainOptions& options, const ModelFiles& model);

// {"points": [...]}, as `plan --curve F.html --json` writes it; a command for each plan.
std::string curve_json(const std::vector<Plan>& plans, const std::vector<std::string>& commands);

}  // namespace headroom
