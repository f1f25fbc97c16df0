// Launcher of SGD's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Arrays of `count` elements, and what the update needs besides.
struct SgdArgs {
  void* w = nullptr;  // f32 or bf16
  const float* g = nullptr;
  float* buffer = nullptr;       // null without momentum
  void* copy = nullptr;          // bf16, or null; only beside an f32 weight
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  const float* clip = nullptr;   // one factor; not finite: nothing changes
  int64_t count = 0;
  float momentum = 0;
  uint64_t tensor = 0;  // the weight's part of the key of its draws
  bool nesterov = false;
  bool decay = false;
};

void launch_sgd(FloatType weight, const SgdArgs& args, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
