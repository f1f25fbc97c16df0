// One technique, or an optimizer with narrower states, added to a run's options, as tried by the ladder and the least
// budgets.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/pass_info.h"
#include "train/options.h"

namespace headroom {

// Options as on a command line, without dashes: {"precision", "bf16-true"}.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

struct TechniqueStep {
  std::string_view name;
  std::string_view setting;

  TechniqueKind kind() const;
  bool is_precision() const;
  // Names no technique: the same optimizer with states in 8 bits.
  bool is_optimizer() const;
  // Whether it changes anything of what the options request.
  bool says_more(const TrainOptions& options) const;
  // The option that sets it in addition to `before`: --precision, --optim, --lora-r, --micro-batch-size, else
  // --technique.
  std::pair<std::string, std::string> option(const TrainOptions& before) const;
  // The same for the options.
  void take(TrainOptions& options) const;
};

// In the order in which the ladder combines them: kind by kind, first those that do not change arithmetic.
std::span<const TechniqueStep> technique_steps();

}  // namespace headroom
