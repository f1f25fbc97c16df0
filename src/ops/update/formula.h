// Numbers for the update formulas in formulas-inl.h. Plain C++17, so that device code can include it.
#pragma once

#include "ops/step_scalars.h"

namespace headroom {

// X(number, type in formulas-inl.h, flops per element, names of the states in order)
#define HR_UPDATES(X)                                                                             \
  X(adamw, AdamUpdate<true>, 15, "exp_avg", "exp_avg_sq")                                         \
  X(adam, AdamUpdate<false>, 16, "exp_avg", "exp_avg_sq")                                         \
  X(moments_decoupled, MomentsUpdate<true>, 17, "exp_avg", "exp_avg_sq")                          \
  X(moments, MomentsUpdate<false>, 18, "exp_avg", "exp_avg_sq")                                   \
  X(sgd, SgdUpdate, 4, )                                                                          \
  X(sgd_momentum, MomentumUpdate<false>, 6, "momentum_buffer")                                    \
  X(sgd_nesterov, MomentumUpdate<true>, 6, "momentum_buffer")                                     \
  X(rmsprop, RmspropUpdate<0>, 10, "square_avg")                                                  \
  X(rmsprop_momentum, RmspropUpdate<1>, 12, "square_avg", "momentum_buffer")                      \
  X(rmsprop_centered, RmspropUpdate<2>, 14, "square_avg", "grad_avg")                             \
  X(rmsprop_centered_momentum, RmspropUpdate<3>, 16, "square_avg", "grad_avg", "momentum_buffer") \
  X(adagrad, AdagradUpdate, 9, "sum")                                                             \
  X(lion, LionUpdate, 9, "exp_avg")                                                               \
  X(sophia, SophiaUpdate, 12, "exp_avg", "hessian")

enum class UpdateFormula {
#define HR_UPDATE_NUMBER(number, ...) number,
  HR_UPDATES(HR_UPDATE_NUMBER)
#undef HR_UPDATE_NUMBER
};

// Elements that share a scale if states are kept in 8 bits (blocks.h).
constexpr int64_t kStateBlock = 256;

constexpr int kUpdateStates = 3, kUpdateNumbers = 3, kUpdateFactors = 8;  // at most

// A call's scalars and attributes, in f64.
struct UpdateStep {
  double lr = 0;
  double decay = 0;                    // weight decay; 0 for a weight without it
  double drawn = 0;                    // labels drawn in a pass that estimates the curvature; 0: a step
  double own[kOwnScalars] = {};        // the optimizer's own scalars, in its order
  double number[kUpdateNumbers] = {};  // the op's attributes, in the order of its row (table.h)
};

}  // namespace headroom
