// A server's weights in lower tiers: what steps copy of them, and the windows for the copies.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace headroom {

struct StreamedWeights {
  int64_t below_bytes = 0;   // on the host or on disk
  int64_t step_bytes = 0;    // copied by a step, whatever the number of its rows
  int64_t window_bytes = 0;  // the most device memory of windows at any time
};

// All 0 for a plan with its weights on the device. Pure.
StreamedWeights streamed_weights(const Plan& plan);

}  // namespace headroom
