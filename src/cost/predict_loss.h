// Predicted seconds of the output projection with its loss.
#pragma once

#include <cstdint>

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

// Rows of a chunk from which on a CPU's time for it is mostly arithmetic; calibration measures thinner ones apart.
constexpr int64_t kWideLossChunk = 64;

// For linear_cross_entropy or linear_cross_entropy_grad.
double predict_loss(const Op& op, const OpCall& call, const Profile& profile);

}  // namespace headroom
