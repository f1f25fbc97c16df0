// The GPU as a Device: one allocation for the arena, page-locked memory for the host's arena and for a window, streams,
// events.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/cuda_runtime.h"
#include "device/cuda/nvml.h"
#include "device/device.h"
#include "ops/cuda/blas.h"
#include "ops/cuda/dnn.h"

namespace headroom {

// Libraries of the device; null if not installed: headroom's own kernels are then used.
struct CudaLibraries {
  std::unique_ptr<CudaBlas> blas;
  std::unique_ptr<CudaDnn> dnn;
  std::string missing;  // a sentence for the user about those that are null
  NvmlTable nvml;       // tells which processes hold the device's memory; nulls if unavailable
};

// The facts that planning needs about such a device: alignment 256, and a workspace for library products of 32 MiB from
// compute capability 9.0 on, else 4 MiB (cuBLAS's own default).
DeviceFacts facts_of(const CudaProperties& properties);

// The memory of a device on which this process has no arena yet. outside_arena_bytes is what this process holds by
// `table`: the context that this call created.
DeviceMemory memory_without_arena(CudaRuntime& runtime, const NvmlTable& table);

// `facts`: those for which the plan was made. `disk`: as for open_device. Throws Error(usage) when the device does not
// have the compute capability of the facts.
std::unique_ptr<Device> make_cuda_device(std::unique_ptr<CudaRuntime> runtime, const DeviceFacts& facts,
                                         CudaLibraries libraries = {}, const std::filesystem::path& disk = {});

}  // namespace headroom
