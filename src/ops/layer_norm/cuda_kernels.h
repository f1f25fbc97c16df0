// Launchers of the layer norm's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Of x[rows, width].
struct LayerNormArgs {
  const void* x = nullptr;
  const float* w = nullptr;  // [width]
  const float* b = nullptr;  // [width]
  void* y = nullptr;         // may be x where the types agree
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
  int64_t chunk = 0;  // rows of a block; set by the launcher, as is `lanes`
  float eps = 0;
  int lanes = 0;
};

// An accumulator of the gradient: acc[j] = (overwrite ? 0 : acc[j]) + the sum, where `wanted`.
struct NormAccumulator {
  bool wanted = false;
  bool overwrite = false;
  float* acc = nullptr;
};

// dx, and the gradients of the weight and the bias where they are wanted.
void launch_layer_norm_grad(FloatType x, FloatType dy, const LayerNormGradArgs& args, const NormAccumulator& weight,
                            const NormAccumulator& bias, CudaStream stream);

}  // namespace headroom::cuda
