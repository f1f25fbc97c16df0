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

// Outside libraries of the device; null where one is not installed: our own kernels then take its place.
struct CudaLibraries {
  std::unique_ptr<CudaBlas> blas;
  std::unique_ptr<CudaDnn> dnn;
  std::string missing;  // a sentence for the user, of those that are null
  NvmlTable nvml;       // who holds the device's memory; nulls where nobody tells
};

// What planning needs to know of such a device: alignment 256, a workspace for library products of 32 MiB from compute
// capability 9.0 on, else 4 MiB (what cuBLAS itself takes by default).
DeviceFacts facts_of(const CudaProperties& properties);

// Of a device on which this process has no arena yet. outside_arena_bytes is what `table` says that this process holds,
// the context that asking made.
DeviceMemory memory_without_arena(CudaRuntime& runtime, const NvmlTable& table);

// `facts` as the plan was made for, `disk` as of open_device. Throws Error(usage) when the device lacks what they say
// (compute capability).
std::unique_ptr<Device> make_cuda_device(std::unique_ptr<CudaRuntime> runtime, const DeviceFacts& facts,
                                         CudaLibraries libraries = {}, const std::filesystem::path& disk = {});

}  // namespace headroom
