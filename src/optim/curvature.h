// Passes that estimate the curvature of the loss, for optimizers that need it (Optimizer::curvature_interval). Such a
// pass runs the program of a step over the step's batch with drawn labels (ops/draw_labels), and the update changes
// only the state of the curvature.
#pragma once

#include "optim/optimizer.h"

namespace headroom {

// Steps from one estimate to the next; 0: none is made.
inline int64_t curvature_interval(const OptimizerSettings& settings) {
  return find_optimizer(settings.optimizer()).curvature_interval(settings);
}
// Whether an estimate comes before the optimizer's own step `step`, from 1. A step that was skipped is taken again, and
// so is its estimate.
inline bool estimates_before(const OptimizerSettings& settings, int64_t step) {
  const int64_t interval = curvature_interval(settings);
  return interval > 0 && (step - 1) % interval == 0;
}
// Runs of a step's program per step, on average.
inline double passes_per_step(const OptimizerSettings& settings) {
  const int64_t interval = curvature_interval(settings);
  return interval > 0 ? 1 + 1 / static_cast<double>(interval) : 1;
}

}  // namespace headroom
