#include "engine/plan_training.h"

#include "planner/alternatives.h"
#include "train/other_trainings.h"

namespace headroom {

PlannedTraining plan_training(const TrainOptions& options) {
  PlannedTraining planned;
  planned.model = open_model(options.model);
  planned.request = training_request(options, planned.model);
  planned.search = search_training_plan(planned.request);
  if (!planned.search.plan.feasible)
    find_alternatives(planned.request, other_trainings(options, planned.model), planned.search.plan);
  return planned;
}

}  // namespace headroom
