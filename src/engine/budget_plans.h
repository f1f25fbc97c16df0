// What each budget would buy.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "train/model_files.h"
#include "train/options.h"

namespace headroom {

// The plans of a training run that budgets of its device buy, whatever the options' --memory is, ascending in peak; at
// most about 32, evenly spread where there are more. Each is what plan_training() gives with its peak for --memory, but
// for its programs and tensors, which are left out. Throws as plan_training(), and Error(does_not_fit) where the
// budgets of the tiers below hold no plan.
std::vector<Plan> plans_by_budget(const TrainOptions& options, const ModelFiles& model);

// {"points": [...]}, as `plan --curve F.html --json` writes it; a command for each plan.
std::string curve_json(const std::vector<Plan>& plans, const std::vector<std::string>& commands);

}  // namespace headroom
