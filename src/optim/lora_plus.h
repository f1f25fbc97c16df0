// LoRA+ (Hayou et al. 2024): the B of an adapter learns faster than its A.
#pragma once

#include <string_view>

#include "optim/optimizer.h"

namespace headroom {

inline constexpr OptimizerOption kLoraPlusRatio{
    "loraplus_lr_ratio", "learning rate of an adapter's B over that of its A (LoRA+)", 1, 1e-6, 1e6};

// The ratio; 1 for an optimizer without this option.
double lora_plus_ratio(const OptimizerSettings& settings);
// Whether a weight is the B of an adapter.
inline bool is_lora_b(std::string_view weight) { return weight.ends_with(".lora_B.weight"); }
// The factor of a parameter's learning rate. As in PEFT, vectors that are trained along with adapters have the factor
// of B.
double rate_factor(const OptimizerSettings& settings, std::string_view weight, ParameterKind kind);

}  // namespace headroom
