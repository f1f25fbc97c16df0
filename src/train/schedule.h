// The numbers of a step: learning-rate schedules, as transformers' get_{linear,cosine,constant}_schedule_with_warmup
// compute them, and the scalars of the update.
#pragma once

#include "optim/curvature.h"
#include "train/loss_scaler.h"
#include "train/options.h"

namespace headroom {

// The rate used in step `step` (from 1) of `total` steps.
double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total);

// The scalars of step `step` (from 1) at that rate, whose global batch has so many targets. The optimizer counts its
// own steps, without skipped ones. Makes no heap call.
StepScalars step_scalars(const TrainOptions& options, const OptimizerSettings& settings, double rate, int64_t step,
                         int64_t targets, const LossScaleState& scaling = {});

}  // namespace headroom
