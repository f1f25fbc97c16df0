// What a device holds besides tensors, and what allocators add.
#pragma once

#include "doctor/model/settings.h"

namespace headroom::doctor {

// Bytes of the CUDA context with the modules that training loads. They depend on the GPU generation and on CUDA's
// module loading (lazy with CUDA 11.7 and later, which torch 2.0 and later use; eager before). 0 for the CPU.
double context_bytes(const std::optional<Gpu>& gpu, const Software& software);

// cuBLAS and cuBLASLt workspaces that torch allocates with its own allocator: a little over 8 MiB per handle before
// Hopper, 32 MiB since.
double workspace_bytes(const std::optional<Gpu>& gpu);

// The memory that the allocator has to provide at a phase's peak.
struct AllocatorLoad {
  double lasting = 0;      // model states that stay
  double passing = 0;      // activations and temporaries
  double activations = 0;  // in `passing`, or after backward freed shortly before: pieces of a layer's tensors
  double gradients = 0;    // freed before the forward pass, in pieces of a layer's weights
  double scores = 0;       // one copy of the S x S scores of all layers, which eager attention keeps
  double score_piece = 0;  // scores of one layer
};

// The memory that an allocator holds beyond the tensors at their peak; low and high bound the range.
//
// A CUDA allocator caches what is freed; blocks of scores are split for smaller tensors and cannot be merged. The C
// library maps pieces above 32 MiB and returns them; smaller ones are in a heap that keeps freed memory between pieces
// in use, so that space of gradients and of a layer's temporaries is lost to other tensors.
struct AllocatorSlack {
  double low = 0, likely = 0, high = 0;
};
AllocatorSlack allocator_slack(const AllocatorLoad& load, const TrainSettings& settings);

}  // namespace headroom::doctor
