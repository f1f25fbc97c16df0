// The GPUs of this machine.
#pragma once

#include "device/device.h"

namespace headroom {

// Opens GPU `index`; `disk` as for open_device. Throws Error(usage) when this build has no CUDA, or there is no driver
// or no such device.
std::unique_ptr<Device> open_cuda_device(int index, const DeviceFacts& facts, const std::filesystem::path& disk = {});

// Its facts, for a calibration. Throws as open_cuda_device.
DeviceFacts cuda_facts(int index);

// Like memory_of_device. Throws as open_cuda_device.
DeviceMemory cuda_memory(int index);

}  // namespace headroom
