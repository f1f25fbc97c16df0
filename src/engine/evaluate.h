// The loss of a model on data: plan, tokens, weights, result.
#pragma once

#include "engine/opened_model.h"
#include "weights/evaluation.h"

namespace headroom {

struct Evaluation {
  Plan plan;  // if it is not feasible, nothing was run
  EvaluationResult result;
};

// Evaluates all rows of options.data.train, truncated to the data's sequence length. Throws Error.
Evaluation evaluate_model(const InferenceOptions& options, const Notes& notes = {});

}  // namespace headroom
