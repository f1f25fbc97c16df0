// AdamW's own scalars of a step, in the order of src/optim/methods/adamw.cpp.
#pragma once

#include "ops/step_scalars.h"

namespace headroom {

constexpr int64_t kBiasCorrection1 = kOwnScalar[0];      // 1 - beta1^t
constexpr int64_t kSqrtBiasCorrection2 = kOwnScalar[1];  // sqrt(1 - beta2^t)

}  // namespace headroom
