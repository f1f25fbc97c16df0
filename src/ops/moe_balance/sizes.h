// The sums behind the load-balancing loss of experts and the space they take, shared by rules and kernels.
#pragma once

#include <cstdint>

namespace headroom {

// c_e of all experts, then p_e, then N (op.cpp).
constexpr int64_t balance_length(int64_t experts) { return 2 * experts + 1; }
constexpr int64_t experts_of_balance(int64_t length) { return (length - 1) / 2; }

// The inputs of moe_balance, moe_balance_grad, moe_balance_loss and moe_balance_loss_grad.
struct BalanceInputs {
  enum : int { logits, rows, offsets, lengths, sums };
};
struct BalanceGradInputs {
  enum : int { logits, lengths, dsums };
};
struct BalanceLossInputs {
  enum : int { sums, labels, losses, scale };
};
struct BalanceLossGradInputs {
  enum : int { sums, labels, scale };
};

// Tokens are summed in this many parts, for any number of threads.
inline constexpr int64_t kBalanceParts = 16;

// Each part has its own sums, and the exponentials of a token.
constexpr int64_t balance_part_length(int64_t experts) { return balance_length(experts) + experts; }
constexpr int64_t balance_scratch_bytes(int64_t experts) {
  return kBalanceParts * balance_part_length(experts) * static_cast<int64_t>(sizeof(float));
}

}  // namespace headroom
