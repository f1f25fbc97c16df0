// Launchers of fake quantisation's device code. The arithmetic is that of base/quantization_grid.h, bit for bit.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// A weight in groups of `group` elements that share a scale.
struct WeightGridArgs {
  const void* weight = nullptr;
  void* y = nullptr;          // the weight on its grid
  float* gradient = nullptr;  // in its place
  int64_t groups = 0;
  int64_t group = 1;
  float low = -128;
  float high = 127;
};

// y = the weight on its grid.
void launch_round_weight(FloatType weight_type, FloatType y_type, const WeightGridArgs& args, CudaStream stream);
// The gradient becomes 0 where a code was clamped.
void launch_mask_weight(FloatType weight_type, const WeightGridArgs& args, CudaStream stream);

// Tokens of `features` each; a token's grid is its scale and its code of zero.
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
  void* dx = nullptr;  // may be dy where the types are the same
  int64_t count = 0;
};

// dx = dy, or 0 where the code is the least or the largest.
void launch_mask_codes(FloatType dy_type, FloatType dx_type, const CodeMaskArgs& args, int multiprocessors,
                       CudaStream stream);

}  // namespace headroom::cuda
