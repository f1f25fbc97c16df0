// Launchers of the device code of the experts' load-balancing loss. Sums are c_e and p_e of all experts, and N
// (op.cpp).
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Logits of a layer's tokens, row-major by sequence.
struct BalanceTokens {
  const void* logits = nullptr;      // [tokens, experts]
  const int32_t* lengths = nullptr;  // tokens of each sequence before its padding
  int64_t tokens = 0;
  int64_t sequence = 1;  // tokens of a sequence
  int32_t experts = 0;
};

struct BalanceArgs {
  BalanceTokens of;
  const int32_t* rows = nullptr;     // [tokens, chosen]
  const int32_t* offsets = nullptr;  // [experts + 1]
  int32_t chosen = 0;
  int64_t parts = 1;
  float* sums_of_parts = nullptr;  // scratch: [2 experts + 1, parts]
  const float* before = nullptr;   // [2 experts + 1]
  float* after = nullptr;          // like `before`; may be `before`
};
// after = before + the layer's sums
void launch_balance(FloatType type, const BalanceArgs& args, CudaStream stream);

// dlogits[tokens, experts] = p (g - sum p g) with g = dsums of the probabilities, 0 for padding; may be the logits.
void launch_balance_grad(FloatType type, const BalanceTokens& of, const float* dsums, void* dlogits, CudaStream stream);

// labels[rows, sequence] are those of the next token: the first of each row and negative ones are not targets.
struct BalanceLossArgs {
  const float* sums = nullptr;  // [2 experts + 1]
  int32_t experts = 0;
  const int32_t* labels = nullptr;
  int64_t count = 0;     // number of labels
  int64_t sequence = 1;  // labels per row
  double coefficient = 0;
};
// losses[0] [+]= coefficient * targets * experts / N^2 * sum c_e p_e; `overwrite` sets the other losses to 0.
void launch_balance_loss(const BalanceLossArgs& args, double* losses, int64_t length, bool overwrite,
                         CudaStream stream);
// dsums = the derivative with respect to the probabilities, times scale[0]; 0 for the counts and N.
void launch_balance_loss_grad(const BalanceLossArgs& args, const float* scale, float* dsums, CudaStream stream);

}  // namespace headroom::cuda
