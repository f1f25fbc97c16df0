// What a step is given in numbers: learning-rate schedules, as transformers'
// get_{linear,cosine,constant}_schedule_with_warmup compute them, and the scalars of the update.
#pragma once

#include "optim/step_scalars.h"
#include "train/options.h"

namespace headroom {

// The rate used in step `step` (from 1) of `total` steps.
double learning_rate_at(const TrainOptions& options, int64_t step, int64_t total);

// The scalars of step `step` (from 1) of `total`, whose global batch has so many targets.
StepScalars step_scalars(const TrainOptions& options, int64_t step, int64_t total, int64_t targets);

}  // namespace headroom
