// The loss of a model on data: plan, tokens, weights, result.
#pragma once

#include "engine/opened_model.h"
#include "train/evaluation.h"

namespace headroom {

struct Evaluation {
  Plan plan;  // not feasible: nothing was run
  EvaluationResult result;
};

// Over all rows of options.data.train, cut to its length. Throws Error.
Evaluation evaluate_model(const InferenceOptions& options, const Notes& notes = {});

}  // namespace headroom
