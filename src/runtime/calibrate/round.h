// One round of a calibration: every rate of a profile, by the timings so far.
#pragma once

#include <functional>

#include "cost/profile.h"
#include "runtime/calibrate/sizes.h"
#include "runtime/calibrate/timed_call.h"

namespace headroom {

// Brings the device to the clock of sustained load.
void warm_up(TimedCalls& calls, const CalibrationSizes& sizes);

// All rates but the disk's. `step` is called kStepsOfRound times. Every round has the same entries in the same order.
inline constexpr int kStepsOfRound = 2;
Profile measure_round(TimedCalls& calls, const DeviceFacts& facts, const CalibrationSizes& sizes,
                      const std::function<void()>& step);

}  // namespace headroom
