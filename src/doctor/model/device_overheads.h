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

// What the allocator had to find room for when a phase peaks.
struct AllocatorLoad {
  double lasting = 0;      // model states that stay
  double passing = 0;      // activations and temporaries
  double activations = 0;  // of `passing` or, after backward, freed shortly before: in pieces of a layer's tensors
  double gradients = 0;    // freed before the forward pass, in pieces of a layer's weights
  double scores = 0;       // one copy of all layers' S x S scores that eager attention keeps
  double score_piece = 0;  // of one layer
};

// What it holds beyond the tensors at their peak. low and high bound the range.
//
// A CUDA allocator caches what is freed; blocks of scores are split for smaller tensors and cannot be joined. The C
// library maps pieces above 32 MiB and gives them back; smaller ones lie in a heap that keeps what is freed between
// pieces in use, so that space once taken by gradients and by a layer's temporaries is not there for others.
struct AllocatorSlack {
  double low = 0, likely = 0, high = 0;
};
AllocatorSlack allocator_slack(const AllocatorLoad& load, const TrainSettings& settings);

}  // namespace headroom::doctor
