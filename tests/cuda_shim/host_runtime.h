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
  int capability = 90;
};

std::unique_ptr<CudaRuntime> make_host_runtime(const HostRuntimeLimits& limits = {});

// Of the runtime made last: allocations of device memory so far, bytes held now, bytes of page-locked memory so far.
int64_t host_runtime_allocations();
int64_t host_runtime_bytes();
int64_t host_runtime_pinned();

}  // namespace headroom
