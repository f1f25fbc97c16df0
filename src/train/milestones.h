// The steps after which a run evaluates and saves, and whether its evaluations let it continue.
#pragma once

#include <cstdint>
#include <optional>

#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/options.h"

namespace headroom {

// For `step`, from 1: --save-steps, and --eval-steps or else each save.
bool saves_after(const SavingOptions& saving, int64_t step);
bool evaluates_after(const EvaluationOptions& evaluation, const SavingOptions& saving, int64_t step);

// Records an evaluation of the model after state.step, by its mean loss: true if it is the best so far. A loss that is
// not finite never is.
bool record_evaluation(double loss, RunState& state);

// Why a run of `total_steps` ends after that evaluation, of which `patience` in a row did not improve (0: never ends);
// nothing if it continues, or has finished.
std::optional<EarlyStop> early_stop_after(const RunState& state, int64_t patience, int64_t total_steps);

}  // namespace headroom
