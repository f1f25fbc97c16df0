// Launcher of the elementwise updates' device code.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/update/formula.h"

namespace headroom::cuda {

// Arrays of `count` elements, and what the update needs besides.
struct UpdateArgs {
  void* w = nullptr;  // f32 or bf16
  const float* g = nullptr;
  float* states[kUpdateStates] = {};
  uint8_t* codes[kUpdateStates] = {};  // in place of them where they are kept in 8 bits (ops/update/blocks.h)
  float* absmax[kUpdateStates] = {};
  void* copy = nullptr;          // bf16, or null; only beside an f32 weight
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  const float* clip = nullptr;   // one factor; not finite: nothing changes
  int64_t count = 0;
  double number[kUpdateNumbers] = {};  // UpdateStep::number
  uint64_t tensor = 0;                 // the weight's part of the key of its draws
  int64_t first = 0;                   // index in the whole weight of element 0
  bool decay = false;
  double rate = 1;  // factor on the learning rate
};

// One step in place. A bf16 weight is rounded stochastically by its elements' draws.
// With `in_blocks` states are kept in 8 bits.
void launch_update(UpdateFormula formula, FloatType weight, const UpdateArgs& args, bool in_blocks, int multiprocessors,
                   CudaStream stream);

}  // namespace headroom::cuda
