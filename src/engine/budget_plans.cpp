#include "engine/budget_plans.h"

#include <algorithm>

#include "engine/refusal.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"

namespace headroom {

std::vector<Plan> plans_by_budget(const TrainOptions& options, const ModelFiles& model) {
  constexpr int64_t kMost = 32;
  PlanRequest request = training_request(options, model);
  request.budget_bytes = int64_t{1} << 60;  // large enough for any plan
  std::vector<Plan> plans;
  search_by_budget(std::move(request), kMost, [&](const Plan& found) {
    throw_if_unfit(found);
    Plan& plan = plans.emplace_back(found);
    plan.budget_bytes = plan.peak_bytes;
    plan.programs = {};
    plan.tensors = {};
    return true;
  });
  std::reverse(plans.begin(), plans.end());
  return plans;
}

std::string curve_json(const std::vector<Plan>& plans, const std::vector<std::string>& commands) {
  Json points = Json::array();
  for (size_t i = 0; i < plans.size(); ++i)
    points.push_back({{"budget_bytes", plans[i].peak_bytes},
                      {"peak_bytes", plans[i].peak_bytes},
                      {"host_bytes", tier_figures(plans[i], Tier::host).peak_bytes},
                      {"disk_bytes", tier_figures(plans[i], Tier::disk).peak_bytes},
                      {"step_seconds", plans[i].step_seconds},
                      {"techniques", taken_techniques(plans[i])},
                      {"command", commands.at(i)}});
  return Json{{"points", std::move(points)}}.dump(2) + "\n";
}

}  // namespace headroom
