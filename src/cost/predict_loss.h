// Predicted seconds of the output projection with its loss.
#pragma once

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

// For linear_cross_entropy or linear_cross_entropy_grad.
double predict_loss(const Op& op, const OpCall& call, const Profile& profile);

}  // namespace headroom
