// Launcher of the elementwise updates' device code.
#pragma once

#include "ops/cuda/narrow_copy.h"
#include "ops/update/formula.h"

namespace headroom::cuda {

// Arrays of `count` elements, and the update's other inputs.
struct UpdateArgs {
  void* w = nullptr;  // f32 or narrow
  const float* g = nullptr;
  float* states[kUpdateStates] = {};
  uint8_t* codes[kUpdateStates] = {};  // instead of states, if these are kept in 8 bits (ops/update/blocks.h)
  float* absmax[kUpdateStates] = {};
  NarrowCopy copy;               // only with an f32 weight
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  const float* clip = nullptr;   // one factor; if it is not finite, nothing changes
  int64_t count = 0;
  double number[kUpdateNumbers] = {};  // UpdateStep::number
  uint64_t tensor = 0;                 // the weight's part of the key of its random bits
  int64_t first = 0;                   // index of element 0 in the whole weight
  bool decay = false;
  double rate = 1;  // factor on the learning rate
};

// One step in place. A narrow weight is rounded stochastically with its elements' random bits. With `in_blocks`, states
// are kept in 8 bits.
void launch_update(UpdateFormula formula, FloatType weight, const UpdateArgs& args, bool in_blocks, int multiprocessors,
                   CudaStream stream);

}  // namespace headroom::cuda
