// One technique, or an optimizer with narrower states, added to a run's options: what the ladder and the least budgets
// try.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/pass_info.h"
#include "train/options.h"

namespace headroom {

// Options as a command line has them, without dashes: {"precision", "bf16-true"}.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

struct TechniqueStep {
  std::string_view name;
  std::string_view setting;

  TechniqueKind kind() const;
  bool is_precision() const;
  // Names no technique: the same optimizer with states in 8 bits.
  bool is_optimizer() const;
  // Whether it says anything beside what the options ask for.
  bool says_more(const TrainOptions& options) const;
  // The option that takes it beside `before`: --precision, --optim, --lora-r, --micro-batch-size, else --technique.
  std::pair<std::string, std::string> option(const TrainOptions& before) const;
  // The same of the options.
  void take(TrainOptions& options) const;
};

// In the order in which the ladder takes them together: kind by kind, those that cost no arithmetic first.
std::span<const TechniqueStep> technique_steps();

}  // namespace headroom
