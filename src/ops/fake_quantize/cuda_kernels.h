// Launchers of fake quantisation's device code. The arithmetic is bitwise that of base/quantization_grid.h.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// A weight in groups of `group` elements that share a scale.
struct WeightGridArgs {
  const void* weight = nullptr;
  void* y = nullptr;          // the weight rounded to its grid
  float* gradient = nullptr;  // changed in place
  int64_t groups = 0;
  int64_t group = 1;
  float low = -128;
  float high = 127;
};

// y = the weight rounded to its grid.
void launch_round_weight(FloatType weight_type, FloatType y_type, const WeightGridArgs& args, CudaStream stream);
// Sets the gradient to 0 where a code was clamped.
void launch_mask_weight(FloatType weight_type, const WeightGridArgs& args, CudaStream stream);

// Tokens of `features` elements each; a token's grid is its scale and the code of zero.
struct TokenGridArgs {
  const void* x = nullptr;
  void* y = nullptr;
  int8_t* codes = nullptr;
  float* grid = nullptr;
  int64_t tokens = 0;
  int64_t features = 1;
};

// x -> codes and grid; codes and grid -> y.
void launch_quantize_tokens(FloatType type, const TokenGridArgs& args, CudaStream stream);
void launch_dequantize_tokens(FloatType type, const TokenGridArgs& args, CudaStream stream);

struct CodeMaskArgs {
  const void* dy = nullptr;
  const int8_t* codes = nullptr;
  void* dx = nullptr;  // may be dy if the types are the same
  int64_t count = 0;
};

// dx = dy, or 0 where the code is the smallest or the largest.
void launch_mask_codes(FloatType dy_type, FloatType dx_type, const CodeMaskArgs& args, int multiprocessors,
                       CudaStream stream);

}  // namespace headroom::cuda
