// The training run: from options and files to a trained model in the output directory.
#pragma once

#include "plan/plan.h"
#include "train/options.h"
#include "train/run_events.h"

namespace headroom {

struct TrainResult {
  Plan plan;  // infeasible: nothing was written
  int64_t steps = 0;
  int stopped_by = 0;  // the signal, or 0
};

// Plans, refuses before anything is written, tokenises, trains, evaluates, saves. Throws Error. Several threads may
// train at the same time, each into its own output directory.
TrainResult train_model(const TrainOptions& options, const TrainEvents& events, RunControl& control);

}  // namespace headroom
