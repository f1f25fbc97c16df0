// The planning request for options and a model's files.
#pragma once

#include "models/model_spec.h"
#include "planner/request.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// The request of a training run. Throws Error(usage | format).
PlanRequest training_request(const TrainOptions& options, const ModelFiles& model);

// The sequence length of a run: the option, else min(model, 512). Throws Error(usage) when the model is shorter.
int64_t sequence_length(const BatchOptions& options, const ModelSpec& spec);

}  // namespace headroom
