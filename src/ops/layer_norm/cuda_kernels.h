// Launchers of the layer norm's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// For x[rows, width].
struct LayerNormArgs {
  const void* x = nullptr;
  const float* w = nullptr;  // [width]
  const float* b = nullptr;  // [width]
  void* y = nullptr;         // may be x if the types are the same
  int64_t rows = 0;
  int64_t width = 0;
  float eps = 0;
  int lanes = 0;  // set by the launcher
};

void launch_layer_norm(FloatType x, FloatType y, const LayerNormArgs& args, CudaStream stream);

struct LayerNormGradArgs {
  const void* x = nullptr;
  const float* w = nullptr;
  const void* dy = nullptr;
  const void* addend = nullptr;  // of x's type, or null
  void* dx = nullptr;            // of x's type; may be dy or the addend
  float* partial = nullptr;      // scratch for the sums of dL/dw and dL/db (layer_norm_grad_cuda_scratch), or null
  int64_t rows = 0;
  int64_t width = 0;
  int64_t chunk = 0;  // rows per block; set by the launcher, like `lanes`
  float eps = 0;
  int lanes = 0;
};

// An accumulator of the gradient: acc[j] = (overwrite ? 0 : acc[j]) + the sum, if `wanted`.
struct NormAccumulator {
  bool wanted = false;
  bool overwrite = false;
  float* acc = nullptr;
};

// dx, and the gradients of the weight and the bias that are wanted.
void launch_layer_norm_grad(FloatType x, FloatType dy, const LayerNormGradArgs& args, const NormAccumulator& weight,
                            const NormAccumulator& bias, CudaStream stream);

}  // namespace headroom::cuda
