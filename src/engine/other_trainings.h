// Trainings that need less memory because they train fewer or other weights.
#pragma once

#include <vector>

#include "planner/alternatives.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// Weights in 16 bits, adapters, and both, if `options`, which do not fit, allow them; the mildest first.
std::vector<ChangedRequest> other_trainings(const TrainOptions& options, const ModelFiles& model);

}  // namespace headroom
