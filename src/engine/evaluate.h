// The loss of a model on data: plan, tokens, weights, result.
#pragma once

#include <functional>

#include "engine/opened_model.h"
#include "engine/work_progress.h"
#include "weights/evaluation.h"

namespace headroom {

struct Evaluation {
  Plan plan;  // if it is not feasible, nothing was run
  EvaluationResult result;
};

// All optional. Called on the calling thread.
struct EvaluationEvents {
  std::function<void(const Plan&)> planned;  // before it is run, or not feasible
  Notes note;
  WorkProgress progress;  // in batches
};

// Evaluates all rows of options.data.train, truncated to the data's sequence length. Throws Error.
Evaluation evaluate_model(const InferenceOptions& options, const EvaluationEvents& events = {});

}  // namespace headroom
