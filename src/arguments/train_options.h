// The options that `train` and `plan` share.
#pragma once

#include "arguments/tier_options.h"
#include "train/options.h"

namespace headroom {

// Parsed text that becomes part of TrainOptions after parsing.
struct TrainArguments {
  TrainOptions options;
  TierArguments tiers;
  int64_t per_device_batch = 0;  // HF's names: their product is the global batch size
  int64_t accumulation = 0;
  std::string gradient_checkpointing;  // HF's alias of recompute
  bool quiet = false;
};

void add_train_options(CLI::App& app, TrainArguments& arguments);

// Folds aliases and `--technique` into options. Throws Error(usage).
TrainOptions resolve(const TrainArguments& arguments);

}  // namespace headroom
