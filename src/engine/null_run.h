// A plan checked on the null device: every access, no arithmetic.
#pragma once

#include <string>

#include "device/device.h"
#include "plan/plan.h"

namespace headroom {

// Runs every program of the plan, with two iterations of each loop. `device`: a null device of the plan's facts.
// Returns the highest access in each tier's arena, bytes. Throws InternalError for an access outside it, or to bytes
// that were not written.
TierBytes run_on_null(const Plan& plan, Device& device);

// The same for a plan made for `device`, with the highest accesses as a line for people; empty for devices other than
// the null device.
std::string null_run_note(const std::string& device, const Plan& plan);

}  // namespace headroom
