// Launcher of AdamW's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Arrays of `count` elements, and what the update needs besides.
struct AdamWArgs {
  void* w = nullptr;  // f32 or bf16
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  void* shadow = nullptr;        // bf16, or null; only beside an f32 weight
  const float* hyper = nullptr;  // of ops/adamw/hyper.h, read on the device
  const float* clip = nullptr;   // one factor; not finite: nothing changes
  int64_t count = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  uint64_t tensor = 0;  // the weight's part of the key of its draws
  bool decay = false;
};

// One step of AdamW in place. A bf16 weight is rounded stochastically by its elements' draws.
void launch_adamw(FloatType weight, const AdamWArgs& args, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
