// What cutting rows at each length would lose, and what it would need.
#pragma once

#include <string>

#include "planner/request.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// Streams the data once (through a token cache that is removed again) and plans for each cut up to the model's
// positions. Text for people. Throws Error as building a token cache does.
std::string explain_cuts(const TrainOptions& options, const ModelFiles& model);

}  // namespace headroom
