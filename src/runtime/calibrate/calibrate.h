// Measures a profile of this machine: products, attention, streams, the update, the loss's softmax.
#pragma once

#include <functional>
#include <string>

#include "cost/profile.h"
#include "device/device.h"
#include "runtime/calibrate/sizes.h"
#include "runtime/calibrate/stopwatch.h"

namespace headroom {

// Runs kernels on `device` in one arena of sizes.buffer_bytes, about 25 s on the CPU. `progress` gets the share done.
// Every rate is that of undisturbed timings where `stopwatch` found any; the profile says where it found none. The hash
// of the result is that of its JSON text. context_bytes is what the process holds of the device beside the arena at the
// end, streams and events of any plan's copies included; 0 where the driver does not tell.
Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress, const CalibrationSizes& sizes, Stopwatch stopwatch);

}  // namespace headroom
