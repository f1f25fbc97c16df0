// The plan of a training run, and what else would fit where it does not.
#pragma once

#include "planner/search.h"
#include "train/setup.h"

namespace headroom {

struct PlannedTraining {
  ModelFiles model;
  PlanRequest request;
  SearchResult search;  // search.plan has its alternatives where it is not feasible
};

// Pure but for reading the model's files and, without a named profile, this machine's facts. Throws Error(usage |
// format).
PlannedTraining plan_training(const TrainOptions& options);

}  // namespace headroom
