// What Adafactor's kernels keep of their node, and the positions of its operands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/attrs.h"
#include "ops/step_scalars.h"

namespace headroom {

// Adafactor's own scalars of a step, in the order of src/optim/methods/adafactor.cpp.
constexpr int64_t kFreshShare = kOwnScalar[0];    // 1 - beta2 of this step
constexpr int64_t kRelativeRate = kOwnScalar[1];  // the rate if relative_step is set

// The inputs of every call, from `states` on as the plan says.
struct AdafactorInputs {
  enum : int { weight, gradient, states };
};

struct AdafactorPlan {
  double beta1 = 0;       // 0: no first moment
  double eps1 = 0;        // added to squares
  double eps2 = 0;        // smallest scale of a parameter
  double clip = 1;        // largest root mean square of an update
  bool scales = false;    // the rate is scaled by the parameter's root mean square
  bool relative = false;  // the rate comes from the step (kRelativeRate)
  bool decay = false;
  uint64_t tensor = 0;  // the weight's part of the key for stochastic rounding
  bool factored = false;
  bool moment = false;
  size_t hyper = 0;  // index among the inputs; the clipping factor follows it
  size_t copy = 0;   // index among the outputs, if the call has that many

  // `of_matrix`: the weight has two or more dimensions.
  AdafactorPlan(const Attrs& attrs, bool of_matrix)
      : beta1(attrs.real("beta1")),
        eps1(attrs.real("eps1")),
        eps2(attrs.real("eps2")),
        clip(attrs.real("clip_threshold")),
        scales(attrs.integer("scale_parameter") != 0),
        relative(attrs.integer("relative_step") != 0),
        decay(attrs.integer("decay") != 0),
        tensor(static_cast<uint64_t>(attrs.integer("tensor"))),
        factored(of_matrix),
        moment(beta1 > 0) {
    hyper = AdafactorInputs::states + states();
    copy = 1 + states();
  }
  // Inputs after weight and gradient: the mean squares of rows and columns, or of elements; then the first moment, if
  // any.
  size_t states() const { return (factored ? 2u : 1u) + (moment ? 1u : 0u); }
  size_t cols_state() const { return factored ? 2 : 1; }  // index among the outputs; the rows' is 1
  size_t moment_state() const { return states(); }
  size_t factor() const { return hyper + 1; }
};

// The scalars of one step, rounded to f32 once.
struct AdafactorStep {
  float clip = 1;   // factor on the gradient
  float fresh = 1;  // share of the new squares
  float eps1 = 0;
  float beta1 = 0;
  float rate = 0;
  float decay = 0;  // of the weight
  float least_scale = 0;
  float most_update = 1;
  bool scales = false;

  AdafactorStep(const AdafactorPlan& plan, const float* hyper, float factor)
      : clip(factor),
        fresh(hyper[kFreshShare]),
        eps1(static_cast<float>(plan.eps1)),
        beta1(static_cast<float>(plan.beta1)),
        rate(hyper[plan.relative ? kRelativeRate : kLearningRate]),
        decay(plan.decay ? hyper[kWeightDecay] : 0.0f),
        least_scale(static_cast<float>(plan.eps2)),
        most_update(static_cast<float>(plan.clip)),
        scales(plan.scales) {}
};

}  // namespace headroom
