// The setting of fused-optimizer for other techniques.
#pragma once

#include "planner/technique.h"

namespace headroom {

// Whether a candidate's gradients are kept until all of them are complete; else each is used up by its update in the
// backward pass.
bool gradients_outlive_layers(const Candidate& candidate);

}  // namespace headroom
