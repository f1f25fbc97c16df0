#include "optim/lora_plus.h"

#include <algorithm>

namespace headroom {

double lora_plus_ratio(const OptimizerSettings& settings) {
  const std::span<const OptimizerOption> options = find_optimizer(settings.optimizer()).options();
  const bool known = std::any_of(options.begin(), options.end(),
                                 [](const OptimizerOption& option) { return option.name == kLoraPlusRatio.name; });
  return known ? settings.value(kLoraPlusRatio.name) : 1;
}

double rate_factor(const OptimizerSettings& settings, std::string_view weight, ParameterKind kind) {
  return is_lora_b(weight) || kind == ParameterKind::vector ? lora_plus_ratio(settings) : 1;
}

}  // namespace headroom
