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
// Every rate comes from timings that `stopwatch` found undisturbed, if there are any; the profile says where there were
// none. The hash of the result is that of its JSON text. context_bytes is the device memory that the process holds
// outside the arena at the end, with the streams and events of any plan's copies; 0 if the driver does not report it.
Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress, const CalibrationSizes& sizes, Stopwatch stopwatch);

}  // namespace headroom
