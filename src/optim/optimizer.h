// Optimizers as IR: which states a parameter has and the nodes that update it. One file per optimizer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/builder.h"

namespace headroom {

struct OptimizerOptions {
  std::string name = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// One parameter's share of the update.
struct UpdateInputs {
  ValueId parameter = kNone;
  ValueId gradient = kNone;  // f32, final
  ValueId hyper = kNone;     // f32[16], the step's scalars (ops/adamw)
  ValueId clip = kNone;      // f32[1], factor on the gradient
  ValueId copy = kNone;      // persistent bf16 copy of the parameter to refresh, or kNone
  bool decays = true;
};

struct Optimizer {
  std::string_view name;
  // Suffixes of the state tensors, as in optimizer.safetensors: "<weight>.exp_avg".
  std::span<const std::string_view> states;
  // Creates the states and appends the update of one parameter.
  void (*update)(Builder& build, const OptimizerOptions& options, const UpdateInputs& in);
};

// Throws Error(usage) naming the optimizers there are.
const Optimizer& find_optimizer(const std::string& name);

const Optimizer& adamw_optimizer();

}  // namespace headroom
