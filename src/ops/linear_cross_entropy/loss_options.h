// Which optional parts a call of the fused output projection and loss has.
#pragma once

#include "ops/cpu/kernel.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

struct LossOptions {
  bool gradient = false;      // dx as well as the loss
  bool trains = false;        // dw too
  bool trains_bias = false;   // the bias's gradient too
  bool loss_carried = false;  // its accumulator is overwritten on the first trip; the same for the next two
  bool weight_carried = false;
  bool bias_carried = false;
  float softcap = 0;  // 0: none
};

// `spec` is one of linear_cross_entropy, linear_cross_entropy_grad.
inline LossOptions loss_options(const KernelSpec& spec) {
  LossOptions options;
  options.gradient = spec.op == "linear_cross_entropy_grad";
  options.trains = options.gradient && spec.attrs.integer("train_weight") != 0;
  options.loss_carried = spec.attrs.text(options.gradient ? "loss_accumulate" : "accumulate", "always") == "carried";
  options.weight_carried = options.trains && spec.attrs.text("accumulate", "always") == "carried";
  options.trains_bias = options.gradient && spec.attrs.integer("train_bias") != 0;
  options.bias_carried = options.trains_bias && spec.attrs.text("accumulate_bias", "always") == "carried";
  options.softcap = static_cast<float>(spec.attrs.real("softcap", 0));
  return options;
}

// The bias: the last input, except for its accumulator if it is trained. Null if there is none.
inline const void* loss_bias(const LossShape& shape, const LossOptions& options, const KernelCall& call) {
  return shape.bias ? call.inputs[call.inputs.size() - 1 - size_t{options.trains_bias}].data : nullptr;
}

}  // namespace headroom
