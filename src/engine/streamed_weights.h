// Weights of a server that lie below the device: what steps copy of them, and the windows that the copies go to.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace headroom {

struct StreamedWeights {
  int64_t below_bytes = 0;   // that lie on the host or on disk
  int64_t step_bytes = 0;    // copied by a step, whatever the number of its rows
  int64_t window_bytes = 0;  // the most that windows take of the device at once
};

// All 0 of a plan with its weights on the device. Pure.
StreamedWeights streamed_weights(const Plan& plan);

}  // namespace headroom
