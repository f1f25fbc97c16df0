// Trainings that need less memory because they train something else.
#pragma once

#include <vector>

#include "planner/alternatives.h"
#include "train/model_files.h"
#include "train/options.h"

namespace headroom {

// Weights in 16 bits, adapters, and both, as far as `options`, which do not fit, leave room for them; from the mildest
// on.
std::vector<ChangedRequest> other_trainings(const TrainOptions& options, const ModelFiles& model);

}  // namespace headroom
