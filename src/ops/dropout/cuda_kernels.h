// Launcher of dropout's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

struct DropoutArgs {
  const void* x = nullptr;
  void* y = nullptr;             // may be x if the types are the same
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  int64_t count = 0;
  int64_t first = 0;    // index of the first element in the step's global batch
  uint64_t tensor = 0;  // the node's part of the key of its random bits
  uint32_t below = 0;   // dropped if the top 31 random bits are below this
  float scale = 1;
};

// y = x * scale if kept, else 0.
void launch_dropout(FloatType x_type, FloatType y_type, const DropoutArgs& args, int multiprocessors,
                    CudaStream stream);

}  // namespace headroom::cuda
