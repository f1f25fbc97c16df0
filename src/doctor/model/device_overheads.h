// What a device holds beside tensors, and what allocators add to them.
#pragma once

#include "doctor/model/settings.h"

namespace headroom::doctor {

// CUDA context with the modules that training loads, bytes: by generation and by CUDA's module loading (eager before
// CUDA 11.7, which torch 2.0 and later use). 0 for the CPU.
double context_bytes(const std::optional<Gpu>& gpu, const Software& software);

// cuBLAS and cuBLASLt workspaces that torch allocates through its own allocator: 8 MiB and a bit per handle before
// Hopper, 32 MiB from Hopper on.
double workspace_bytes(const std::optional<Gpu>& gpu);

// What the allocator holds beyond the tensors at their peak: `lasting` of model states, `passing` of activations and
// temporaries. low and high bound the range.
struct AllocatorSlack {
  double low = 0, likely = 0, high = 0;
};
AllocatorSlack allocator_slack(double lasting, double passing, const TrainSettings& settings);

}  // namespace headroom::doctor
