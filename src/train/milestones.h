// After which steps a run evaluates and saves, and what its evaluations say about going on.
#pragma once

#include <cstdint>
#include <optional>

#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/options.h"

namespace headroom {

// Of `step`, from 1: --save-steps, and --eval-steps or else each save.
bool saves_after(const SavingOptions& saving, int64_t step);
bool evaluates_after(const EvaluationOptions& evaluation, const SavingOptions& saving, int64_t step);

// Records an evaluation of the model as it is after state.step, by its mean loss: true where it is the best so far. A
// loss that is not finite never is.
bool record_evaluation(double loss, RunState& state);

// Why a run of `total_steps` ends after that evaluation, of which `patience` in a row were no better (0: never);
// nothing where it goes on, or has come to its end.
std::optional<EarlyStop> early_stop_after(const RunState& state, int64_t patience, int64_t total_steps);

}  // namespace headroom
