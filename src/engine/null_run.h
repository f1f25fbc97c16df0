// A plan checked on the null device: every access, no arithmetic.
#pragma once

#include "device/device.h"
#include "plan/plan.h"

namespace headroom {

// Runs every program of the plan, loops twice. `device`: a null device of the plan's facts. Returns the highest access
// in each tier's arena, bytes. Throws InternalError for an access outside, or of what was not written.
TierBytes run_on_null(const Plan& plan, Device& device);

}  // namespace headroom
