// Learning-rate schedules, as transformers' get_{linear,cosine,constant}_schedule_with_warmup compute them.
#pragma once

#include "train/options.h"

namespace headroom {

// The rate used in step `step` (from 1) of `total` steps.
double learning_rate_at(const TrainOptions& options, int64_t step, int64_t total);

}  // namespace headroom
