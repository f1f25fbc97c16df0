// Launchers of the RMS norm's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// For x[rows, width].
struct RmsNormArgs {
  const void* x = nullptr;
  const float* w = nullptr;        // [width]
  const void* residual = nullptr;  // of y's type, added to the rounded norm, or null
  void* y = nullptr;               // may be the residual, or x if the types are the same
  int64_t rows = 0;
  int64_t width = 0;
  float eps = 0;
  float unit = 0;  // added to w
  int lanes = 0;   // set by the launcher
};

void launch_rms_norm(FloatType x, FloatType y, const RmsNormArgs& args, CudaStream stream);

struct RmsNormGradArgs {
  const void* x = nullptr;
  const float* w = nullptr;
  const void* dy = nullptr;
  const void* addend = nullptr;  // of x's type, or null
  void* dx = nullptr;            // of x's type; may be dy or the addend
  void* narrow = nullptr;        // dx in bf16, or null
  float* partial = nullptr;      // scratch for the sums of dL/dw (rms_norm_grad_cuda_scratch), or null: no dL/dw
  int64_t rows = 0;
  int64_t width = 0;
  int64_t chunk = 0;  // rows per block; set by the launcher, like `lanes`
  float eps = 0;
  float unit = 0;
  int lanes = 0;
};

// dx, and with `train` acc[j] = (overwrite ? 0 : acc[j]) + dL/dw[j].
void launch_rms_norm_grad(FloatType x, FloatType dy, const RmsNormGradArgs& args, bool train, bool overwrite,
                          float* acc, CudaStream stream);

}  // namespace headroom::cuda
