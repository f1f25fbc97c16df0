// NVIDIA's runtime over host memory: everything happens at once, in the order of the calls. Counts and limits what a
// device would.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/cuda_runtime.h"
#include "device/cuda/nvml.h"

namespace headroom {

struct HostRuntimeLimits {
  int64_t total_bytes = int64_t{4} << 30;
  int64_t held_by_others = 0;
  // Held by this process beside its allocations.
  int64_t context_bytes = 0;
  int64_t stream_bytes = 0;  // by each
  int64_t kernel_bytes = 0;  // by each that is loaded
  bool tells = true;         // NVML, of the device that stands in the place of cuda:0
  int capability = 90;
  int64_t graph_node_bytes = 512;  // of device memory, for each node of a graph
};

// Of the runtime made last: graphs and their nodes that are there, launches of graphs so far.
struct HostRuntimeGraphs {
  int64_t held = 0;
  int64_t nodes = 0;
  int64_t launches = 0;
};

// Of the device that stands in the place of cuda:0, where the driver tells it too.
inline constexpr int64_t kHostRuntimeContext = int64_t{256} << 20;
// Its limits, which a test may change.
HostRuntimeLimits& limits_of_cuda0();

// NVML that tells what this process holds of the runtime made last; or, `of_others`, that a process which is not this
// one holds all that is held.
NvmlTable telling_nvml(bool of_others = false);

std::unique_ptr<CudaRuntime> make_host_runtime(const HostRuntimeLimits& limits = {});

// Of the runtime made last: allocations of device memory so far, bytes held now, bytes of page-locked memory so far.
int64_t host_runtime_allocations();
int64_t host_runtime_bytes();
int64_t host_runtime_pinned();
HostRuntimeGraphs host_runtime_graphs();
// Streams and events made behind the last allocation of device memory.
int64_t host_runtime_made_late();

}  // namespace headroom
