// NVIDIA's runtime over host memory: everything happens at once, in the order of the calls. Counts and limits what a
// device would.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/cuda_runtime.h"

namespace headroom {

struct HostRuntimeLimits {
  int64_t total_bytes = int64_t{4} << 30;
  int64_t held_by_others = 0;
  int64_t context_bytes = 0;  // held by this process beside its allocations
  int capability = 90;
  int64_t graph_node_bytes = 512;  // of device memory, for each node of a graph
};

// Of the runtime made last: graphs and their nodes that are there, launches of graphs so far.
struct HostRuntimeGraphs {
  int64_t held = 0;
  int64_t nodes = 0;
  int64_t launches = 0;
};

// Of the device that stands in the place of cuda:0, where NVML would tell it too.
inline constexpr int64_t kHostRuntimeContext = int64_t{256} << 20;

std::unique_ptr<CudaRuntime> make_host_runtime(const HostRuntimeLimits& limits = {});

// Of the runtime made last: allocations of device memory so far, bytes held now, bytes of page-locked memory so far.
int64_t host_runtime_allocations();
int64_t host_runtime_bytes();
int64_t host_runtime_pinned();
HostRuntimeGraphs host_runtime_graphs();

}  // namespace headroom
