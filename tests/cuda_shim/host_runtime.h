// NVIDIA's runtime over host memory: everything happens at once, in the order of the calls. Has a device's counters and
// limits.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/cuda_runtime.h"
#include "device/cuda/nvml.h"

namespace headroom {

struct HostRuntimeLimits {
  int64_t total_bytes = int64_t{4} << 30;
  int64_t held_by_others = 0;
  // Held by this process besides its allocations.
  int64_t context_bytes = 0;
  int64_t stream_bytes = 0;  // per stream
  int64_t kernel_bytes = 0;  // per loaded kernel
  bool tells = true;         // whether the NVML of the device in place of cuda:0 reports memory
  int capability = 90;
  int64_t graph_node_bytes = 512;  // device memory per node of a graph
};

// For the runtime created last: existing graphs and nodes, and launches of graphs so far.
struct HostRuntimeGraphs {
  int64_t held = 0;
  int64_t nodes = 0;
  int64_t launches = 0;
};

// For the device in place of cuda:0, which the driver also reports.
inline constexpr int64_t kHostRuntimeContext = int64_t{256} << 20;
// Its limits, which a test may change.
HostRuntimeLimits& limits_of_cuda0();

// NVML that reports what this process holds of the runtime created last; with `of_others`, that another process holds
// all of it.
NvmlTable telling_nvml(bool of_others = false);

std::unique_ptr<CudaRuntime> make_host_runtime(const HostRuntimeLimits& limits = {});

// For the runtime created last: device allocations so far, bytes held now, page-locked bytes so far.
int64_t host_runtime_allocations();
int64_t host_runtime_bytes();
int64_t host_runtime_pinned();
HostRuntimeGraphs host_runtime_graphs();
// Streams and events created after the last device allocation.
int64_t host_runtime_made_late();

}  // namespace headroom
