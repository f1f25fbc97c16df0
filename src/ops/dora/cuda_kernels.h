// Launchers of the device code of row lengths and magnitudes.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// weight [outs, ins], a [rank, ins], b [outs, rank].
struct RowLengthsArgs {
  const void* weight = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  float* lengths = nullptr;
  int64_t outs = 0, ins = 0, rank = 0;
  float factor = 1;
};
// `matrices`: the type of a and b.
void launch_row_lengths(FloatType weight, FloatType matrices, const RowLengthsArgs& args, CudaStream stream);

struct MagnitudeArgs {
  const void* z = nullptr;
  const float* magnitude = nullptr;
  const float* lengths = nullptr;
  const float* bias = nullptr;     // or none
  const void* residual = nullptr;  // or none
  void* y = nullptr;
  int64_t rows = 0, width = 0;
};
void launch_magnitude(FloatType z, FloatType y, const MagnitudeArgs& args, int multiprocessors, CudaStream stream);

struct MagnitudeGradArgs {
  const void* dy = nullptr;
  const void* z = nullptr;
  const float* magnitude = nullptr;
  const float* lengths = nullptr;
  void* dz = nullptr;
  float* partial = nullptr;  // sums of each block's rows (ops/cuda/rows_scratch.h)
  int64_t rows = 0, width = 0, chunk = 0;
  int lanes = 0;
};
// `acc` [width] becomes the sum over rows of dy z / lengths, added to what it holds unless `overwrite`.
void launch_magnitude_grad(FloatType z, FloatType dy, const MagnitudeGradArgs& args, bool overwrite, float* acc,
                           CudaStream stream);

}  // namespace headroom::cuda
