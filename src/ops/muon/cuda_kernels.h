// Launchers of Muon's device code: the passes over elements between the products.
#pragma once

#include "ops/cuda/narrow_copy.h"
#include "ops/step_scalars.h"

namespace headroom::cuda {

// One matrix of `count` elements; the bf16 arrays are scratch.
struct MuonArgs {
  void* w = nullptr;  // f32 or narrow
  const float* g = nullptr;
  float* buffer = nullptr;
  NarrowCopy copy;               // only with an f32 weight
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  const float* clip = nullptr;   // one factor; if it is not finite, nothing changes
  void* x = nullptr;             // bf16
  float* norms = nullptr;        // kMuonNormParts partial sums of squares, then the norm
  int64_t first = 0;             // index of the matrix's first element in the weight, for the key of its random bits
  int64_t count = 0;
  float momentum = 0;
  float least_norm = 0;
  double rate_factor = 1;
  uint64_t tensor = 0;  // the weight's part of the key of its random bits
  bool nesterov = false;
  bool decay = false;
};

constexpr int kMuonNormParts = 256;

// Updates the momentum buffer. x becomes the matrix to orthogonalise, divided by its norm.
void launch_muon_begin(const MuonArgs& args, int multiprocessors, CudaStream stream);
// to = factor * from for `count` bf16 elements.
void launch_muon_scale(const void* from, float factor, int64_t count, void* to, int multiprocessors, CudaStream stream);
// Updates the weight with x.
void launch_muon_end(FloatType weight, const MuonArgs& args, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
