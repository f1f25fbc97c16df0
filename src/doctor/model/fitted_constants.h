// The only constants of the memory model that were fitted to measurements. All describe allocators: what they hold
// besides tensors. Everything else is derived. benchmarks/doctor_estimates.py tests each system with constants fitted
// without its rows.
#pragma once

namespace headroom::doctor {

struct FittedConstants {
  double fragmentation = 0.03;        // CUDA: share of activations and temporaries
  double eager_fragmentation = 0.20;  // CUDA, eager attention: blocks of scores are split for smaller tensors
  double heap_gradients = 1.0;        // CPU: share of the gradients freed before the forward pass
  double heap_activations = 0.2;      // CPU: share of activations
  double heap_scores = 2.5;           // CPU: share of scores in pieces below the C library's mapping threshold
  double heap_freed = 0.8;            // CPU: share of the activations just freed, after backward
};

}  // namespace headroom::doctor
