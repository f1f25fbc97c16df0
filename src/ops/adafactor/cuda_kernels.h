// Launcher of Adafactor's device code.
#pragma once

#include "ops/cuda/narrow_copy.h"
#include "ops/step_scalars.h"

namespace headroom::cuda {

struct AdafactorArgs {
  void* w = nullptr;  // f32 or narrow
  const float* g = nullptr;
  float* row_squares = nullptr;  // null for a vector
  float* col_squares = nullptr;
  float* moment = nullptr;       // null without momentum
  NarrowCopy copy;               // only with an f32 weight
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  const float* clip = nullptr;   // one factor; if it is not finite, nothing changes
  float* row_factors = nullptr;  // scratch, laid out as in ops/adafactor/shape.h
  float* col_factors = nullptr;
  float* row_sums = nullptr;
  float* whole = nullptr;  // the rate, and the factor for updates
  int64_t matrices = 1;
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t fresh_index = 0;  // into hyper
  int64_t rate_index = 0;
  float eps1 = 0;
  float beta1 = 0;
  float least_scale = 0;
  float most_update = 1;
  uint64_t tensor = 0;  // the weight's part of the key of its random bits
  bool factored = false;
  bool scales = false;
  bool decay = false;
};

// One step in place. A narrow weight is rounded stochastically with its elements' random bits.
void launch_adafactor(FloatType weight, const AdafactorArgs& args, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
