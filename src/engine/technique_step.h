// One technique, or an optimizer with narrower states, added to a run's options, as tried by the ladder and the least
// budgets.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/technique.h"
#include "train/options.h"

namespace headroom {

// Options as on a command line, without dashes: {"precision", "bf16-true"}.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

class TechniqueStep {
 public:
  // Null: no technique, but the same optimizer with states in 8 bits.
  explicit TechniqueStep(const Technique* technique) : technique_(technique) {}

  std::string_view name() const;
  std::string_view setting() const;
  TechniqueKind kind() const;
  bool is_precision() const;
  // Whether --technique sets it, for it has no option of its own.
  bool is_pin() const;
  // Whether it changes anything of what the options request.
  bool says_more(const TrainOptions& options) const;
  // The option that sets it in addition to `before`: its own (--precision, --optim, --lora-r, --micro-batch-size), else
  // --technique.
  std::pair<std::string, std::string> option(const TrainOptions& before) const;
  // The same for the options.
  void take(TrainOptions& options) const;

 private:
  const Technique* technique_;
};

// In the order in which the ladder combines them: kind by kind, first those that do not change arithmetic; within a
// kind as their records say (Technique::ladder).
std::vector<TechniqueStep> technique_steps();

}  // namespace headroom
