// The plan of a training run, and alternatives if it does not fit.
#pragma once

#include <functional>
#include <string>

#include "planner/search.h"
#include "train/resume_point.h"
#include "weights/model_files.h"

namespace headroom {

// If an adapter is trained further, its rank, targets and so on become the options'. Throws as open_adapter() and
// continued_lora().
void go_on_from_adapter(TrainOptions& options, const ModelFiles& model);

struct PlannedTraining {
  PlanRequest request;
  SearchResult search;  // search.plan has alternatives if it is not feasible
};

// Pure, except that without a named profile it reads this machine's facts. Throws Error(usage | format).
PlannedTraining plan_training(const TrainOptions& options, const ModelFiles& model);

// The text of `plan --explain`: the reasons for each technique, in bytes and seconds.
std::string explanation(const PlannedTraining& planned);
// Which figures of a plan are estimates, as a note with the remedy; empty if all are measured.
std::string estimates_note(const PlannedTraining& planned);

// The least budget of a training run, bytes, whatever its options say: Plan::minimum_bytes. Throws as plan_training().
int64_t least_training_budget(TrainOptions options, const ModelFiles& model);

// The plan of a run on this machine that continues from `from`: with each recorded setting that the options do not
// contradict, so that losses are bitwise the same. Where micro-batch and chunk sizes do not fit the budget, others are
// chosen. Sets the size of this thread's team. `note` gets lines for people.
PlannedTraining plan_run(const TrainOptions& options, const ModelFiles& model, const ResumePoint& from,
                         const std::function<void(const std::string&)>& note);

}  // namespace headroom
