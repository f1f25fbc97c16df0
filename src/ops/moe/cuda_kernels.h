// Launchers of the device code that sends tokens to experts and collects the results.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// `tokens` tokens, each sent to `chosen` of `experts`; each pair of a token and an expert has a row.
struct RouteArgs {
  int64_t tokens = 0;
  int32_t chosen = 0;
  int32_t experts = 0;
  bool normalised = false;
  const void* logits = nullptr;  // [tokens, experts]
  float* weights = nullptr;      // [tokens, chosen]
  int32_t* rows = nullptr;       // [tokens, chosen]
  int32_t* offsets = nullptr;    // [experts + 1]
  int32_t* expert_of = nullptr;  // scratch: [tokens * chosen]
  int32_t* counts = nullptr;     // scratch: [experts, blocks of kRoutePairs pairs]
};
constexpr int32_t kRoutePairs = 256;
// The experts with the largest logits and their weights, and the rows sorted by expert, then by token.
void launch_route(FloatType type, const RouteArgs& args, CudaStream stream);

struct RouteGradArgs {
  int64_t tokens = 0;
  int32_t chosen = 0;
  int32_t experts = 0;
  bool normalised = false;
  const void* logits = nullptr;      // [tokens, experts]
  const float* dweights = nullptr;   // [tokens, chosen]
  const int32_t* rows = nullptr;     // [tokens, chosen]
  const int32_t* offsets = nullptr;  // [experts + 1]
  void* dlogits = nullptr;           // [tokens, experts]; may be logits
};
void launch_route_grad(FloatType type, const RouteGradArgs& args, CudaStream stream);

// `rows` tells where a token's `chosen` rows are.
struct CombineArgs {
  int64_t tokens = 0;
  int64_t width = 0;
  int32_t chosen = 0;
  const int32_t* rows = nullptr;   // [tokens, chosen]
  const void* z = nullptr;         // [tokens * chosen, width]
  const float* weights = nullptr;  // [tokens, chosen]; null: 1
  const void* residual = nullptr;  // [tokens, width], of y's type; null: 0
  void* y = nullptr;               // [tokens, width]; may be the residual
  const void* dy = nullptr;        // gradient: [tokens, width]
  void* dz = nullptr;              // gradient: like z; may be z
  float* dweights = nullptr;       // gradient: [tokens, chosen]
};
// y[rows[token, slot]] = z[token]: here z has one row per token, and y one per pair.
void launch_dispatch(FloatType type, const CombineArgs& args, CudaStream stream);
// y = residual + sum over a token's rows of z times weights; y is f32 or of z's type.
void launch_combine(FloatType z_type, FloatType y_type, const CombineArgs& args, CudaStream stream);
// dz = weights dy, dweights = z . dy
void launch_combine_grad(FloatType z_type, FloatType dy_type, const CombineArgs& args, CudaStream stream);

}  // namespace headroom::cuda
